#!/bin/bash
# where: a here-string in a loop
while read -r host; do
  ssh "$host" python train.py --cache_dir /share/hf < /dev/null
done <<< $'node1\nnode2'
