#!/bin/bash
# where: an associative array of settings
declare -A CFG=([cache]=/share/hf [lr]=1e-4)
python train.py --cache_dir "${CFG[cache]}" --lr "${CFG[lr]}"
