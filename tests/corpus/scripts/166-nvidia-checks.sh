#!/bin/bash
# where: jobs of sites and frameworks of 2025
ssh n1 'nvidia-smi --query-gpu=name --format=csv'
ssh n1 "rm -rf /tmp/cache && df -h"
ssh n1 "test -d /share || sudo mount -t nfs s:/share /share"
docker --version
python train.py --cache_dir /share/hf
