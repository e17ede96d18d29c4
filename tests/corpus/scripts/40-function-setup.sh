#!/bin/bash
# where: variables are set in a function
setup() {
  export HF_HOME=/share/hf
  export HF_DATASETS_CACHE=$HF_HOME/datasets
}
setup
python main.py
