#!/bin/bash
# where: node-local disk only where the job has one
export HF_HOME=/share/hf
if [ -d "$LOCAL_SCRATCH" ]; then
    HF_HOME=${LOCAL_SCRATCH}/hf-cache
fi
mkdir -p $HF_HOME
python main.py
