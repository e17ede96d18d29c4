#!/bin/bash
# where: data are copied to the node, then everything is offline
# env: SLURM_TMPDIR=/scratch/42
mkdir -p $SLURM_TMPDIR/hf
cp -r /share/hf/datasets $SLURM_TMPDIR/hf/
export HF_HOME=$SLURM_TMPDIR/hf
export HF_DATASETS_OFFLINE=1
python main.py
