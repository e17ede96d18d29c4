#!/bin/bash
# where: a heredoc .env, then exported
cat > job.env <<EOT
HF_HOME=/share/hf
HF_DATASETS_CACHE=/share/hf/datasets
EOT
set -a
. ./job.env
set +a
python main.py
