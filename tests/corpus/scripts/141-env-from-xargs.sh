#!/bin/bash
# where: an environment from a file through xargs
cat > run.env <<'E'
HF_HOME=/share/hf
PYTHONPATH=/share/job/src
E
export $(grep -v '^#' run.env | xargs)
python main.py
