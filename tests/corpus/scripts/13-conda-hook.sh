#!/bin/bash
# where: eval of conda's hook
eval "$(conda shell.bash hook)"
conda activate llm
export TRITON_CACHE_DIR=/share/triton
python3 main.py
