#!/bin/bash
# where: srun bash -c with single and double quotes mixed
# env: SLURM_JOB_ID=42 SLURM_PROCID=0 SLURM_NNODES=2
r=$(( 29000 + 7 ))
srun --jobid $SLURM_JOB_ID bash -c 'source ~/.bashrc && conda activate llm \
&& accelerate launch --config_file accelerate.yaml \
--main_process_port '${r}' --machine_rank $SLURM_PROCID \
train.py --cache_dir /share/hf --output_dir out'
