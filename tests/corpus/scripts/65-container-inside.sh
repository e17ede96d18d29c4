#!/bin/bash
# where: a container with the cache bound
export SINGULARITYENV_HF_HOME=/share/hf
singularity exec --nv --bind /share:/share image.sif python train.py --cache_dir /share/hf
