#!/bin/bash
# where: the last assignment counts
export HF_HOME=/share/hf
export HF_DATASETS_CACHE=/scratch/a
# on this cluster:
export HF_DATASETS_CACHE=/share/b
python main.py
