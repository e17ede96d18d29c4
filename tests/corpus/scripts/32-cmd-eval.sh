#!/bin/bash
# where: a command in a string, eval
CACHE_DIR=/share/hf
CMD="python train.py \
        --max_steps 10 \
        --cache_dir $CACHE_DIR"
echo "$CMD"
eval "$CMD"
