#!/bin/bash
# where: the same where the user has set it
# env: HF_DATASETS_CACHE=/scratch/mine
export HF_DATASETS_CACHE=${HF_DATASETS_CACHE:-/share/d}
python main.py
