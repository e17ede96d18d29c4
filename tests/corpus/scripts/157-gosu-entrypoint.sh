#!/bin/bash
# where: jobs of sites and frameworks of 2025
set -e
if [ "$1" = train ]; then shift; exec gosu app python train.py "$@"; fi
exec "$@"
