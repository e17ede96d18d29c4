#!/bin/bash
# where: nohup, a pid file, wait
nohup python -u train.py --cache_dir /share/hf > train.txt 2>&1 &
echo $! > train.pid
wait
