#!/bin/bash
# where: in the background with logs
nohup env -i PATH="$PATH" python train.py --cache_dir /share/hf > train.log 2>&1 &
wait $!
