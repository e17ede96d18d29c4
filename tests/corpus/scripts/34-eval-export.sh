#!/bin/bash
# where: exports by eval
for name in HF_HOME HF_DATASETS_CACHE; do
  eval "export $name=/share/hf"
done
python main.py
