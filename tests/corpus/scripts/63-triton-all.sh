#!/bin/bash
# where: every compiler's cache in one place
CACHE_DIR=/share/cache
export TRITON_CACHE_DIR=$CACHE_DIR XDG_CACHE_HOME=$CACHE_DIR HF_HOME=$CACHE_DIR
export TORCH_EXTENSIONS_DIR=$CACHE_DIR/ext
mkdir -p "$CACHE_DIR"
torchrun --nproc_per_node 8 main.py
