#!/bin/bash
# where: a file of commands for xargs
cat > cmds.txt <<'E'
python train.py --cache_dir /share/hf
PYTHONPATH=src python train.py --cache_dir /share/hf
E
xargs -I{} -a cmds.txt bash -c {}
