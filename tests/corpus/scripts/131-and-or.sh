#!/bin/bash
# where: one line of shell
cd /share/job && export PYTHONPATH=src && python train.py --cache_dir /share/hf || exit 1
