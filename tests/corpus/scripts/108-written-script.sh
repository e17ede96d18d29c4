#!/bin/bash
# where: a script that is written and run
cat > step.sh <<'STEP'
export PYTHONPATH=/share/job/src
python train.py --cache_dir /share/hf
STEP
bash step.sh
