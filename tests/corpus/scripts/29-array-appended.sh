#!/bin/bash
# where: an array that grows
ARGS=(--lr 1e-4)
if [ -n "${USE_CACHE:-yes}" ]; then
  ARGS+=(--cache_dir /share/hf)
fi
python train.py "${ARGS[@]}"
