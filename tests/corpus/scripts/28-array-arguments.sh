#!/bin/bash
# where: an array of words
#SBATCH --ntasks-per-node=1
TRAIN_ARGS=(
    --model_name_or_path gpt2
    --cache_dir /share/hf
    --output_dir "out dir"   # with a space
)
accelerate launch --config_file accelerate.yaml train.py "${TRAIN_ARGS[@]}"
