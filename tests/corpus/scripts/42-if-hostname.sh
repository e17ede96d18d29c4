#!/bin/bash
# where: another path by host name
if [[ $(hostname) == head* ]]; then
  CACHE=/share/hf
else
  CACHE=/scratch/hf
fi
python train.py --cache_dir $CACHE
