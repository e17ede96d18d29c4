#!/bin/bash
# where: commands of a file in an array
printf '%s\n' 'python -E train.py --cache_dir /share/hf' > todo.list
mapfile -t cmds < todo.list
for c in "${cmds[@]}"; do bash -c "$c"; done
