#!/bin/bash
# where: retries by a function
retry() { local n=$1; shift; for ((i = 0; i < n; i++)); do "$@" && return 0; done; return 1; }
export HF_HOME=/share/hf
retry 2 torchrun --nproc_per_node 2 main.py
