#!/bin/bash
# where: LAUNCHER and CMD, joined in bash -c
export LAUNCHER="torchrun \
    --nproc_per_node 8 \
    --nnodes 2 \
    --rdzv_endpoint node1:6000 \
    "
export CMD="train.py --cache_dir /share/hf --output_dir out"
srun --jobid ${SLURM_JOB_ID:-42} bash -c "$LAUNCHER --node_rank \$SLURM_PROCID $CMD"
