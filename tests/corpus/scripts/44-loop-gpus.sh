#!/bin/bash
# where: one process per GPU in the background
export HF_HOME=/share/hf
for i in 0 1 2 3; do
  CUDA_VISIBLE_DEVICES=$i nohup python main.py --shard $i > log_$i.txt 2>&1 &
done
wait
