#!/bin/bash
# where: the same, submitted where the variable is not known
export HF_HOME=$SLURM_TMPDIR/huggingface
export HF_DATASETS_CACHE=$SLURM_TMPDIR/huggingface/datasets
python main.py
