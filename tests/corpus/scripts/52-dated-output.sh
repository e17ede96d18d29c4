#!/bin/bash
# where: the date in the output's name
OUT=out/$(date +%Y%m%d)
mkdir -p $OUT
python train.py --cache_dir /share/hf --output_dir $OUT 2>&1 | tee $OUT/train.txt
exit ${PIPESTATUS[0]}
