#!/bin/bash
# where: a launcher by the number of nodes
if [ "${SLURM_JOB_NUM_NODES:-2}" -gt 1 ]; then
  LAUNCHER="srun --export=NCCL_DEBUG,PATH torchrun"
else
  LAUNCHER="torchrun --standalone"
fi
$LAUNCHER --nproc_per_node 2 train.py --cache_dir /share/hf
