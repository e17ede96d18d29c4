#!/bin/bash
# where: export V=${V:-...}
ROOT_DIR=${ROOT_DIR:-/share}
export HF_DATASETS_CACHE=${HF_DATASETS_CACHE:-$ROOT_DIR/cache/hf_datasets}
export TORCHINDUCTOR_CACHE_DIR=${TORCHINDUCTOR_CACHE_DIR:-$ROOT_DIR/cache/kernels}
export TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-$TORCHINDUCTOR_CACHE_DIR/triton}
python main.py
