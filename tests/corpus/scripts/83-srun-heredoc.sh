#!/bin/bash
# where: srun with a here-document of a shell
#SBATCH -N 2
srun bash <<'EOT'
export HF_DATASETS_CACHE=/share/d
python main.py --rank $SLURM_PROCID
EOT
