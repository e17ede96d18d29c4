#!/bin/bash
# where: commands of a here-document, line by line
while IFS= read -r line; do
  eval "$line"
done <<'JOBS'
python train.py --cache_dir /share/hf
env -i PATH="$PATH" python train.py --cache_dir /share/hf
JOBS
