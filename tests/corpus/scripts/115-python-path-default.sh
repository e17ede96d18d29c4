#!/bin/bash
# where: a default for a path
export PYTHONPATH=${MY_PATH:-/share/job/src}
python train.py --cache_dir /share/hf
