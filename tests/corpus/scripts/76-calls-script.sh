#!/bin/bash
# where: a script that calls another
export SEED=1
bash job.sh "$SEED"
./plain.sh
