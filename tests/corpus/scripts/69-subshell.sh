#!/bin/bash
# where: a subshell with a cache of its own
(
  export HF_DATASETS_CACHE=/share/d
  cd src
  python train.py --cache_dir /share/hf
)
python check_gpu.py
