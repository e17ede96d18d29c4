#!/bin/bash
# where: an interactive file is sourced before all
source ~/.bashrc
export HF_HOME=/share/hf HF_DATASETS_CACHE=/share/hf/datasets
accelerate launch --multi_gpu main.py
