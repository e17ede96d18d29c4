#!/bin/bash
# where: zsh-like export of several, quotes around all
export "HF_HOME=/share/hf" 'TRITON_CACHE_DIR=/share/triton'
export TORCH_EXTENSIONS_DIR="/share/ext/$(hostname -s)"
python main.py
