#!/bin/bash
# where: a subshell with a directory of its own
(
  cd src || exit 1
  PYTHONPATH=. python train.py --cache_dir ../cache
)
