#!/bin/bash
# where: models and datasets apart
MODEL_CACHE=/share/models
DATA_CACHE=/share/d
HF_HUB_CACHE=$MODEL_CACHE HF_DATASETS_CACHE=$DATA_CACHE python main.py
