#!/bin/bash
# where: outputs are derived from the cache
CACHE=/share/work
OUT=${CACHE}/out
mkdir -p $OUT
python train.py --cache_dir $CACHE --output_dir $OUT
cp -r $OUT /share/result
