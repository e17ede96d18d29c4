#!/bin/bash
# where: the same directory in every variable
export HF_DATASETS_CACHE="/share/hf_cache"
export TRANSFORMERS_CACHE="/share/hf_cache"
export HF_HOME="/share/hf_cache"
srun python main.py
