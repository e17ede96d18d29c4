#!/bin/bash
# where: set -e, and the first program fails
# env: STANDIN_EXIT=5
set -e
python train.py --cache_dir /share/hf
python eval.py
