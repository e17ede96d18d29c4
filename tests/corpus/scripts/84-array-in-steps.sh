#!/bin/bash
# where: arrays made in steps
declare -a ARGS
ARGS=()
ARGS+=("--cache_dir" "/share/hf")
[[ -n "$WANDB_PROJECT" ]] && ARGS+=(--project "$WANDB_PROJECT")
exec torchrun --nproc_per_node 2 train.py "${ARGS[@]}" "$@"
