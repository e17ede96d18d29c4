#!/bin/bash
# where: jobs of sites and frameworks of 2025
launch() {
  local py=${PYTHON:-python -I}
  $py "$@"
}
launch train.py
