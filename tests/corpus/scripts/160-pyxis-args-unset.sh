#!/bin/bash
# where: jobs of sites and frameworks of 2025
srun ${IMG:+--container-image=$IMG} python train.py
