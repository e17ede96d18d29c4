#!/bin/bash
# where: a program in a here-document
export HF_DATASETS_CACHE=/share/d
python - <<PY
from datasets import load_dataset
load_dataset("json", data_files="$PWD/a.json")
PY
