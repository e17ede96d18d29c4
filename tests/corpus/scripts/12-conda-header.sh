#!/bin/bash
# where: conda.sh, activate, run, deactivate
#SBATCH --mem=64G
source ~/miniconda3/etc/profile.d/conda.sh
conda activate llm
export HF_DATASETS_CACHE=/share/d
export TRANSFORMERS_CACHE=/share/models
python -u train.py --cache_dir /share/hf --output_dir out
conda deactivate
