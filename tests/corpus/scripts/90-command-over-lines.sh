#!/bin/bash
# where: the command in a string over lines, srun bash -c
CMD=" \
    train.py \
    --cache_dir /share/hf \
    --output_dir out \
    "
LAUNCHER="python -u -m torch.distributed.run --nproc_per_node 8"
srun --jobid 42 bash -c "$LAUNCHER $CMD" 2>&1 | tee main_log
