#!/bin/bash
# where: a generated batch script
for seed in 1 2; do
cat > gen_$seed.sh <<SH
#!/bin/bash
#SBATCH --job-name=s$seed
export HF_DATASETS_CACHE=/share/d
python main.py --seed $seed
SH
sbatch gen_$seed.sh
done
