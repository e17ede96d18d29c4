#!/bin/bash
# where: long options by a loop over "$@"
CACHE_DIR=/share/hf
while [[ $# -gt 0 ]]; do
  case "$1" in
    --cache) CACHE_DIR="$2"; shift 2 ;;
    *) shift ;;
  esac
done
python train.py --cache_dir "${CACHE_DIR}"
