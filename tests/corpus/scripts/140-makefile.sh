#!/bin/bash
# where: a Makefile that sets the path
cat > Makefile <<'M'
CACHE ?= /share/hf
train:
	PYTHONPATH=src python train.py --cache_dir $(CACHE)
M
make train
