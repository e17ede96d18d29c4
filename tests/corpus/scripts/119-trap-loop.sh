#!/bin/bash
# where: what runs at the end
finish() { ssh node1 'python /share/job/train.py --cache_dir /share/hf'; }
trap finish EXIT
python check_gpu.py
