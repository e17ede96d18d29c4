#!/bin/bash
# where: a file of commands through a pipe
cat > cmds.txt <<'E'
python -I train.py --cache_dir /share/hf
E
cat cmds.txt | bash
