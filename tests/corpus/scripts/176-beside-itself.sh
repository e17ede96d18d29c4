#!/bin/bash
# where: training repositories that call their own scripts by the directory of the script
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bash "$HERE/isolated.sh"
python train.py --cache_dir /share/hf
