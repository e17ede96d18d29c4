#!/bin/bash
# where: the launcher in a variable, by the number of nodes
# env: SLURM_NNODES=1
if [ "${SLURM_NNODES:-1}" -gt 1 ]; then
  LAUNCH="srun torchrun --nnodes $SLURM_NNODES"
else
  LAUNCH="torchrun --standalone"
fi
$LAUNCH train.py --cache_dir /share/hf
