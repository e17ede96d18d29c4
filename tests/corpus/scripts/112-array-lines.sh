#!/bin/bash
# where: a container in an array of lines
LAUNCH=(
  apptainer exec --nv
  --bind /share
  image.sif
)
"${LAUNCH[@]}" python train.py --cache_dir /share/hf
