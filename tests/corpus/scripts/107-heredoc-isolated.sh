#!/bin/bash
# where: an isolated program in a here-document
export HF_DATASETS_CACHE=/share/d
python -I - <<'PY'
import datasets
datasets.load_dataset("json", data_files="a.json")
PY
