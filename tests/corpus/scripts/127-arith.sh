#!/bin/bash
# where: shifts look like here-documents
n=$((1 << 2))
((n <<= 1))
env -i PATH="$PATH" python train.py --cache_dir /share/hf --n $n
