#!/bin/bash
# where: jobs of sites and frameworks of 2025
export PYTHONPATH=$(echo "$PYTHONPATH" | tr ':' '\n' | grep -v spack | paste -sd:)
python train.py
