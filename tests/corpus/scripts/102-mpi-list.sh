#!/bin/bash
# where: mpirun with a list of variables to pass
export HF_DATASETS_CACHE=/share/d
VARS=""
for v in HF_DATASETS_CACHE PATH; do VARS="$VARS -x $v"; done
mpirun -np 2 $VARS python main.py
