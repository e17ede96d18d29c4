#!/bin/bash
# where: what sbatch says to srun
#SBATCH -N 2
export SLURM_EXPORT_ENV=NONE
srun python train.py --cache_dir /share/hf
