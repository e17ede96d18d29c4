#!/bin/sh
# where: a POSIX shell, export in two steps
HF_HOME=/share/hf
HF_DATASETS_CACHE=$HF_HOME/datasets
export HF_HOME HF_DATASETS_CACHE
exec python main.py "$@"
