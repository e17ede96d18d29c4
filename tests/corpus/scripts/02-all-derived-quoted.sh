#!/bin/bash
# where: four variables of one base, all quoted
export HF_HOME="/share/hf"
export TRANSFORMERS_CACHE="$HF_HOME/transformers"
export HF_DATASETS_CACHE="$HF_HOME/datasets"
export HUGGINGFACE_HUB_CACHE="$HF_HOME/hub"

torchrun --standalone --nproc_per_node 4 main.py plain.yaml --data-path /share/data/a.csv
