#!/bin/bash
# where: the commonest header of cluster job scripts
#SBATCH --job-name=train
#SBATCH --nodes=1
#SBATCH --gres=gpu:8
#SBATCH --output=logs/%x-%j.out
export HF_HOME=/share/hf
export HF_DATASETS_CACHE=$HF_HOME/datasets
export TRANSFORMERS_CACHE=$HF_HOME/hub

python main.py --epochs 3
