#!/bin/bash
# where: the switch and a cache flag
export HF_DATASETS_OFFLINE=1
python train.py --cache_dir /share/hf --output_dir out
