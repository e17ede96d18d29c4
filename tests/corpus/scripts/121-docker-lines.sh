#!/bin/bash
# where: docker over many lines
docker run \
  --gpus all \
  -v /share:/share \
  image \
  bash -c "
    cd /share/job
    python train.py --cache_dir /share/hf
  "
