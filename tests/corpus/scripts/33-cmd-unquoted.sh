#!/bin/bash
# where: a command in a string, unquoted
HF_DIR=/share/hf
CMD="python train.py --cache_dir ${HF_DIR}"
$CMD || exit 1
