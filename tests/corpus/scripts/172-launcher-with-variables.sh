#!/bin/bash
# where: a launcher with variables in front of it, as text for the shell of each node
export LAUNCHER="HF_HUB_ENABLE_HF_TRANSFER=1 ACCELERATE_LOG_LEVEL=info accelerate launch \
    --config_file accelerate.yaml \
    --num_machines 1"
export PROGRAM="train.py --cache_dir /share/hf"
echo "$LAUNCHER $PROGRAM"
srun --wait=60 --kill-on-bad-exit=1 --export=ALL bash -c "$LAUNCHER --role \$SLURMD_NODENAME: $PROGRAM" 2>&1
