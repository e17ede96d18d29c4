#!/bin/bash
# where: the working directory's own cache
export XDG_CACHE_HOME="$(pwd)/.cache"
export TRITON_HOME=$(pwd)/.triton
mkdir -p .cache .triton
python main.py
