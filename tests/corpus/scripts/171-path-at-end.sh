#!/bin/bash
# where: a script that leaves no traces
OLD=$PYTHONPATH
export PYTHONPATH=$PWD/src:$PYTHONPATH
python train.py --cache_dir /share/hf
unset PYTHONPATH
echo done
