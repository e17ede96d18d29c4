#!/bin/bash
# where: a function that launches, a switch in it
export HF_DATASETS_CACHE=/share/hf/datasets
evaluate() {
  local model=$1
  HF_DATASETS_OFFLINE=1 python main.py --model "$model"
}
evaluate a
evaluate b
