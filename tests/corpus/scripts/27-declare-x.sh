#!/bin/bash
# where: declare -x and typeset
declare -x HF_HOME=/share/hf
typeset -x HF_DATASETS_CACHE=/share/hf/datasets
python main.py
