#!/bin/bash
# where: ${USER} and ${SLURM_JOB_ACCOUNT} in the path
# env: SLURM_JOB_ACCOUNT=project_1 SLURM_JOB_ID=42
#SBATCH --account=project_1
module purge
module load pytorch/2.4
export HF_HOME=/share/${SLURM_JOB_ACCOUNT}/${USER}/hf-cache
mkdir -p $HF_HOME
OUTPUT_DIR=/share/${SLURM_JOB_ACCOUNT}/${USER}/out
mkdir -p $OUTPUT_DIR
export TOKENIZERS_PARALLELISM=false
srun python main.py --output_dir $OUTPUT_DIR
