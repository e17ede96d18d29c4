#!/bin/bash
# where: a job that is written into a pipe
OUT=out-$(date +%Y)
cat <<JOB | bash -s -- one
export PYTHONPATH=$(pwd)
python train.py --cache_dir /share/hf --output_dir "$OUT"
JOB
