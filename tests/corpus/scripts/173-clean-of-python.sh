#!/bin/bash
# where: a site's Python is cleared out of the environment
for name in $(env | sed -n 's/^\(PYTHON[A-Z]*\)=.*/\1/p'); do
  unset "$name"
done
source /share/venv/bin/activate
python train.py --cache_dir /share/hf
