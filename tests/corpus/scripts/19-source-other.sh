#!/bin/bash
# where: variables in a file beside
source ./env.sh
torchrun --nproc_per_node 8 main.py
