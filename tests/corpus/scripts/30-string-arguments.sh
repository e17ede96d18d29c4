#!/bin/bash
# where: options in strings, joined
DATA_ARGS="--data_path /share/data --cache_dir /share/hf"
TRAIN_ARGS="--lr 1e-4 \
  --epochs 3"
ALL_ARGS="${TRAIN_ARGS} ${DATA_ARGS}"
echo ${ALL_ARGS}
python train.py ${ALL_ARGS}
