#!/bin/bash
# where: nested functions with a local cache
main() {
  local cache=/share/hf
  train "$cache"
}
train() { python train.py --cache_dir "$1"; }
main
