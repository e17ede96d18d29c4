#!/bin/bash
# where: : "${V:=...}" and export
set -eu
: "${HF_HOME:=/share/hf}"
: "${HF_DATASETS_CACHE:=$HF_HOME/datasets}"
export HF_HOME HF_DATASETS_CACHE
mkdir -p "$HF_HOME"
python main.py
