#!/bin/bash
# where: jobs of sites and frameworks of 2025
while IFS= read -r host || [[ -n "$host" ]]; do
  ssh -n "$host" 'pkill -f torchrun; cd /share/job && nohup torchrun train.py > log 2>&1 &'
done < /share/job/two_nodes
