#!/bin/bash
# where: a Slurm array picks its word
# env: SLURM_ARRAY_TASK_ID=1 SLURM_JOB_ID=42
#SBATCH --array=0-2
TASKS=("a" "b" "c")
TASK=${TASKS[$SLURM_ARRAY_TASK_ID]}
export HF_DATASETS_CACHE=/share/d
srun python eval.py --task $TASK
