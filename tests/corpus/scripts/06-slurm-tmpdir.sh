#!/bin/bash
# where: caches on the batch system's node-local directory
# env: SLURM_TMPDIR=/scratch/42 SLURM_JOB_ID=42
#SBATCH --gres=gpu:4
export HF_DATASETS_CACHE=$SLURM_TMPDIR/datasets
export HF_HOME=/share/hf
python main.py
