#!/bin/bash
# where: Slurm, rendezvous on the first node
# env: SLURM_JOB_ID=42 SLURM_NNODES=2 SLURM_JOB_NODELIST=node[1-2] SLURM_PROCID=0
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=29500
export HF_HOME=/share/hf
srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 --rdzv_id $SLURM_JOB_ID \
  --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT \
  train.py --cache_dir /share/hf
