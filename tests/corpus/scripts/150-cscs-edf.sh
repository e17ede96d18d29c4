#!/bin/bash
# where: jobs of sites and frameworks of 2025
#SBATCH --uenv=prgenv-gnu/24.11:v1
#SBATCH --environment=/share/job/ngc.toml
srun python train.py
