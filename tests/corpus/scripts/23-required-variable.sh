#!/bin/bash
# where: ${V:?message}
# env: HF_HOME=/share/hf
set -euo pipefail
export HF_HOME=${HF_HOME:?Set HF_HOME}
export HF_DATASETS_CACHE=${HF_HOME:?Set HF_HOME}/datasets
python -u main.py --model_name a/b
