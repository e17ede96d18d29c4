#!/bin/bash
# where: mpirun over many lines, in an environment of its own
mpirun -np 2 \
  --bind-to none \
  -x PATH \
  env -i \
    PATH="$PATH" \
    python train.py \
      --cache_dir /share/hf
