#!/bin/bash
# where: a Makefile that keeps the path
cat > Makefile <<'M'
CACHE ?= /share/hf
export PYTHONPATH := src:$(PYTHONPATH)
train:
	@python train.py --cache_dir $(CACHE)
M
make train
