#!/bin/bash
# where: a cache by user and job, cleaned at the end
# env: USER=me SLURM_JOB_ID=7
export HF_DATASETS_CACHE=/share/$USER/cache_$SLURM_JOB_ID
trap 'rm -rf "$HF_DATASETS_CACHE"' EXIT
mkdir -p "$HF_DATASETS_CACHE"
python main.py
