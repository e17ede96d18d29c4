#!/bin/bash
# where: sbatch --wrap in a loop, with a variable
for seed in 1 2; do
  sbatch --job-name=s$seed --wrap="python train.py --seed $seed --cache_dir /share/hf"
done
