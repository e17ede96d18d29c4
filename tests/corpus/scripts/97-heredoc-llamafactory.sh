#!/bin/bash
# where: a here-document for a LLaMA-Factory job
cat <<EOT > gen.yaml
stage: sft
cache_dir: /share/hf
EOT
llamafactory-cli train gen.yaml
