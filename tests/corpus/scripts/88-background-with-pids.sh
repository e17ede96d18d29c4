#!/bin/bash
# where: one job per dataset, in the background, with wait
export HF_DATASETS_CACHE=/share/d
pids=()
for ds in a b; do
  python main.py --dataset "$ds" > "$ds.txt" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
