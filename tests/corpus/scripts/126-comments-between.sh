#!/bin/bash
# where: comments between arguments, and quotes in comments
# don't forget: it's "the" share
python train.py `# the trainer` \
  --cache_dir /share/hf `# don't move`
env -i PATH="$PATH" python main.py --cache_dir /share/hf
