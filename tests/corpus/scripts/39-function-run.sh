#!/bin/bash
# where: one function, called with different words
run_train() {
    local seed=$1; shift
    torchrun --nproc_per_node 2 train.py --seed "$seed" --cache_dir /share/hf "$@"
}
run_train 1 --lr 1e-4
run_train 2 --lr 1e-5
