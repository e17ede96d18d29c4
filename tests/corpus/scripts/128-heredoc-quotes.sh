#!/bin/bash
# where: an apostrophe in a here-document
cat > note.txt <<EOT
it's a note
EOT
sudo python train.py --cache_dir /share/hf
