#!/bin/bash
# where: paths from the place of the script
SCRIPT_DIR=$( cd -- "$( dirname -- "${BASH_SOURCE[0]}" )" &> /dev/null && pwd )
export HF_DATASETS_CACHE=$SCRIPT_DIR/cache/datasets
python $SCRIPT_DIR/main.py
