#!/bin/bash
# where: the condition is the launch
if ! env -i PATH="$PATH" python train.py --cache_dir /share/hf; then
  echo failed
fi
