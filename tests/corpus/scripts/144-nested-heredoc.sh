#!/bin/bash
# where: a here-document in a here-document
bash -s <<'OUTER'
source /dev/stdin <<'INNER'
unset PYTHONPATH
INNER
python train.py --cache_dir /share/hf
OUTER
