#!/bin/bash
# where: jobs of sites and frameworks of 2025
paths=("$PWD/src" "$PWD/third_party/Megatron-LM" "$PYTHONPATH")
printf -v PYTHONPATH '%s:' "${paths[@]}"
export PYTHONPATH
python train.py
