#!/bin/bash
# where: srun with a prolog in the text, and quotes three deep
srun bash -c "
  export HF_HOME=/share/hf
  export HF_DATASETS_CACHE=\$HF_HOME/datasets
  bash -c 'python main.py --name \"a b\"'
"
