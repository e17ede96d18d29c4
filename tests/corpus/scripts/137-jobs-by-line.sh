#!/bin/bash
# where: commands of a file, line by line
cat > jobs.txt <<'J'
python train.py --cache_dir /share/hf --seed 1
python -I train.py --cache_dir /share/hf --seed 2
J
while read -r c; do $c; done < jobs.txt
