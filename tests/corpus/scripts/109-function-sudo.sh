#!/bin/bash
# where: a function that runs its words as another user
as_root() {
  sudo "$@"
}
as_root python train.py --cache_dir /share/hf
