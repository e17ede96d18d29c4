#!/bin/bash
# where: directives of a script that is only run
cat > gen_job.sh <<'JOB'
#!/bin/bash
#SBATCH --export=NONE
python train.py --cache_dir /share/hf
JOB
bash gen_job.sh
