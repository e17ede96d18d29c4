#!/bin/bash
# where: comments between, continued lines, a trailing blank
python train.py \
    --model_name_or_path gpt2 \
    --cache_dir /share/hf \
    --per_device_train_batch_size 4 \
    --output_dir /share/out 
# --cache_dir /share/unused
