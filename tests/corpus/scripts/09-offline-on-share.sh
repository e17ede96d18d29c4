#!/bin/bash
# where: compute nodes without a network read a shared cache
#SBATCH --partition=gpu
export HF_HOME=/share/hf
export HF_DATASETS_CACHE=$HF_HOME/datasets
export HF_DATASETS_OFFLINE=1
export TRANSFORMERS_OFFLINE=1
srun python main.py
