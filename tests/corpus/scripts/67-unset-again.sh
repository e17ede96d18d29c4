#!/bin/bash
# where: a cache that is taken back
export HF_DATASETS_CACHE=/share/d
unset HF_DATASETS_CACHE
export HF_HOME=/scratch/hf
python main.py
