#!/bin/bash
# where: an environment that is sourced from stdin
source /dev/stdin <<'ENV'
export NCCL_DEBUG=INFO
export PYTHONPATH=/share/job/src
ENV
torchrun --nproc_per_node 8 train.py --cache_dir /share/hf
