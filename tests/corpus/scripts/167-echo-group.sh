#!/bin/bash
# where: a job that is written by a group of commands
for lr in 1e-4 1e-5; do
  {
    echo '#!/bin/bash'
    echo 'unset PYTHONPATH'
    echo "python train.py --lr $lr --cache_dir /share/hf"
  } > job_$lr.sh
  bash job_$lr.sh
done
