#!/bin/bash
# where: DISTRIBUTED_ARGS
DISTRIBUTED_ARGS="--nproc_per_node 2 --nnodes 1"
PYTHONPATH=/share/job/src:/share/job torchrun $DISTRIBUTED_ARGS \
    train.py --cache_dir /share/hf
