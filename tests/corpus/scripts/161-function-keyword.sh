#!/bin/bash
# where: jobs of sites and frameworks of 2025
function remote {
  local host="$1"
  ssh -q "$host" "${@:2}"
}
remote n1 python train.py
