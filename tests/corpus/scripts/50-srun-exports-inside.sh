#!/bin/bash
# where: exports inside of srun's text
srun bash -c 'export PERSIST=/share/me \
&& export HF_HOME=${PERSIST}/hf \
&& export HF_DATASETS_CACHE=${HF_HOME}/datasets \
&& python main.py'
