#!/bin/bash
# where: caches exported after the first program
python check_gpu.py
export HF_HOME=/share/hf
python main.py
unset HF_HOME
python main.py
