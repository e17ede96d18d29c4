#!/bin/bash
# where: a PBS job
#PBS -l select=1:ncpus=8:ngpus=4
#PBS -j oe
cd "${PBS_O_WORKDIR:-$(pwd)}"
export HF_DATASETS_CACHE="/share/d"
export HF_HOME="/share/hf_home"
export PYTHON_EXEC="/share/venv/bin/python"
$PYTHON_EXEC main.py
