#!/bin/bash
# where: a path that is set if it is not
if [ -z "$NOTHING" ]; then
  export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}/share/job/src
fi
python train.py --cache_dir /share/hf
