#!/bin/bash
# where: a launcher in an array
cmd=(env -i "PATH=$PATH")
cmd+=(python train.py --cache_dir /share/hf)
"${cmd[@]}"
