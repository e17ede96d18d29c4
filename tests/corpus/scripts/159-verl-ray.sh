#!/bin/bash
# where: jobs of sites and frameworks of 2025
head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun --nodes=1 --ntasks=1 -w "$head_node" ray start --head --port=6379 --block &
sleep 10
ray job submit --address="http://127.0.0.1:8265" -- python3 -m verl.trainer.main_ppo
