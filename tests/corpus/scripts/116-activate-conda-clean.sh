#!/bin/bash
# where: an environment that empties PYTHONPATH
source ~/miniconda3/etc/profile.d/conda.sh
conda activate llm
export PYTHONNOUSERSITE=1
export PYTHONPATH=""
torchrun --nproc_per_node 2 train.py --cache_dir /share/hf
