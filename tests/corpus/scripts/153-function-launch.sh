#!/bin/bash
# where: jobs of sites and frameworks of 2025
run() {
  local image=$1; shift
  docker run --rm --gpus all --ipc=host -v /share:/share "$image" "$@"
}
run nvcr.io/nvidia/pytorch:24.10-py3 torchrun --nproc_per_node 8 train.py --cache_dir /share/hf
