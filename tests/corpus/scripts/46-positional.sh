#!/bin/bash
# where: everything from $1
set -e
HF_CACHE=${1:-/share/hf}
OUT=${2:-out}
python train.py --cache_dir $HF_CACHE --output_dir $OUT
