#!/bin/bash
# where: flags from another tool's output
FLAGS=$(echo --cache_dir /share/hf --lr 1)
python train.py $FLAGS
