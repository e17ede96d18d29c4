#!/bin/bash
# where: directives that count for nobody
#SBATCH --job-name=x
#SBATCH --export=NONE
#SBATCH --nodes=1
python train.py --cache_dir /share/hf
