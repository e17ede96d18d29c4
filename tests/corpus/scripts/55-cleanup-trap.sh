#!/bin/bash
# where: a trap that cleans up
set -Eeuo pipefail
trap 'rm -rf "$TMP_DIR"' EXIT
TMP_DIR=/scratch/tmp-run
mkdir -p "$TMP_DIR"
export HF_DATASETS_CACHE=/share/d
python main.py --tmp "$TMP_DIR"
