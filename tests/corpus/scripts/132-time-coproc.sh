#!/bin/bash
# where: keywords of bash in front
time env -i PATH="$PATH" python train.py --cache_dir /share/hf
coproc ssh node1 python train.py --cache_dir /share/hf
wait
