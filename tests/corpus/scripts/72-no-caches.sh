#!/bin/bash
# where: nothing of all that
#SBATCH --time=1:00:00
echo "on $(hostname)"
nvidia-smi
python check_gpu.py
