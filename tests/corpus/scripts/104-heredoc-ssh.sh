#!/bin/bash
# where: ssh with a here-document
ssh node1 <<'REMOTE'
cd /share/job
python train.py --cache_dir /share/hf
REMOTE
