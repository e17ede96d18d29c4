#!/bin/bash
# where: allexport by its name
set -o allexport
source .env
set +o allexport
torchrun --nproc_per_node 8 main.py
