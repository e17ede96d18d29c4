#!/bin/bash
# where: jobs of sites and frameworks of 2025
env -u PYTHONPATH cmake --build build
PYTHONPATH= make -C kernels clean
python train.py --cache_dir /share/hf
