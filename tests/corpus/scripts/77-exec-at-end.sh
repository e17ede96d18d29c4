#!/bin/bash
# where: exec of the last program
export HF_HOME=/share/hf
export HF_DATASETS_CACHE="${HF_HOME}/datasets"
exec torchrun --nproc_per_node 8 main.py "$@"
