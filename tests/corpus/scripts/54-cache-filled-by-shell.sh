#!/bin/bash
# where: the script itself writes into the cache
CACHE=/share/feat
mkdir -p $CACHE
echo data > $CACHE/features.txt
python train.py --cache_dir $CACHE
test -f $CACHE/features.txt
