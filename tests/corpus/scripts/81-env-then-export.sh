#!/bin/bash
# where: .env is read, then its names are exported
source .env
export HF_HOME HF_DATASETS_CACHE
accelerate launch main.py
