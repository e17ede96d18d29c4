#!/bin/bash
# where: OFFLINE decided by a ping
if ping -c1 -W1 huggingface.co > /dev/null 2>&1; then OFFLINE=0; else OFFLINE=1; fi
export HF_DATASETS_OFFLINE=$OFFLINE
export HF_DATASETS_CACHE=/share/hf/datasets
python main.py
