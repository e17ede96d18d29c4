#!/bin/bash
#SBATCH --nodes=1
# where: a script that submits itself
if [ -z "$SLURM_JOB_ID" ]; then
  mkdir -p logs
  sbatch "$0"
  exit
fi
export HF_HOME=/share/hf
srun python main.py
