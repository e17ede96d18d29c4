#!/bin/bash
# where: one run per seed
for seed in 1 2 3; do
  for lr in 1e-4 1e-5; do
    python train.py --seed $seed --lr $lr --cache_dir /share/hf --output_dir out/$seed-$lr
  done
done
