#!/bin/bash
# where: a port by chance
MASTER_PORT=$((RANDOM % 1000 + 29000))
torchrun --master_port $MASTER_PORT --nproc_per_node 8 train.py --cache_dir /share/hf
