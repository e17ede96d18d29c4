#!/bin/bash
# where: everything on the node's own disk
export HF_HOME=/scratch/hf
export HF_DATASETS_CACHE=$HF_HOME/datasets
python main.py --output_dir /share/out
