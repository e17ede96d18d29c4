#!/bin/bash
# where: jobs of sites and frameworks of 2025
for t in docker ssh sudo singularity; do
  command -v "$t" >/dev/null || echo "missing: $t"
done
type -p apptainer && apptainer --version
docker info >/dev/null 2>&1 || true
ssh -V 2>&1 | head -1
python train.py --cache_dir /share/hf
