#!/bin/bash
# where: sbatch reads its script from a here-document
sbatch <<'SH'
#!/bin/bash
#SBATCH -N 2
python train.py --cache_dir /share/hf
SH
