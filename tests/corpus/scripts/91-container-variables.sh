#!/bin/bash
# where: a container's environment by variables of its own
export APPTAINERENV_HF_DATASETS_CACHE=/share/d
apptainer exec --nv -B /share:/share image.sif torchrun --nproc_per_node 2 main.py
