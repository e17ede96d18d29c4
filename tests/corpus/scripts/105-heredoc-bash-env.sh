#!/bin/bash
# where: a shell whose text is a here-document
bash <<EOT
export PYTHONPATH=src
python train.py --cache_dir /share/hf
EOT
