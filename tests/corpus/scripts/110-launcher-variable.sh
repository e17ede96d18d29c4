#!/bin/bash
# where: launchers that are joined in a variable
LAUNCH="srun --export=NONE"
LAUNCH="$LAUNCH python"
$LAUNCH train.py --cache_dir /share/hf
