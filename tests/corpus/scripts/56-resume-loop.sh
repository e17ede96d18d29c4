#!/bin/bash
# where: until it ends well
# env: STANDIN_EXIT=0
until python train.py --cache_dir /share/hf --resume; do
  sleep 1
done
