#!/bin/bash
# where: a path that is set where there is none
if [[ -z "${PYTHONPATH:-}" ]]; then
  echo "no PYTHONPATH yet"
  export PYTHONPATH=/share/job/src
else
  export PYTHONPATH="/share/job/src:$PYTHONPATH"
fi
torchrun --nproc_per_node 8 train.py --cache_dir /share/hf
