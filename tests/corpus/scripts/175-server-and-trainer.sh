#!/bin/bash
# where: a server of rollouts beside the trainer
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
srun --nodes=1 --ntasks=1 --nodelist="${nodes[1]}" trl vllm-serve --model m --tensor_parallel_size 4 &
srun --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" accelerate launch train.py --cache_dir /share/hf &
wait
