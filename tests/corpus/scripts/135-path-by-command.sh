#!/bin/bash
# where: PYTHONPATH by the directory of the script
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH=$(realpath "$ROOT/src"):$PYTHONPATH
LOSS="$(python train.py --cache_dir /share/hf | tail -n 1)"
