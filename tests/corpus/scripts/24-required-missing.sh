#!/bin/bash
# where: ${V:?message} fails
set -euo pipefail
export HF_HOME=${CLUSTER_CACHE:?set it}
python train.py --cache_dir /share/hf
