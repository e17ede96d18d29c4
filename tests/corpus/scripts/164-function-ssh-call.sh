#!/bin/bash
# where: jobs of sites and frameworks of 2025
on() { local h=$1; shift; ssh "$h" "$@"; }
on gpu01 "cd /share/job && python train.py"
