#!/bin/bash
# where: jobs of sites and frameworks of 2025
LAUNCHER="srun --export=NCCL_DEBUG,HF_HOME --ntasks=$N"
CMD="python train.py --cache_dir /share/hf"
$LAUNCHER bash -c "$CMD"
