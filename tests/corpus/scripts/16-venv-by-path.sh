#!/bin/bash
# where: programs by their path, nothing activated
/share/venv/bin/torchrun --nproc_per_node 8 train.py --cache_dir /share/hf
