#!/bin/bash
# where: an editor of another system
env -i PATH="$PATH" python train.py --cache_dir /share/hf
