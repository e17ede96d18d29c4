#!/bin/bash
# where: a configuration file is written, then used
cat > run.yaml <<YAML
cache_dir: /share/hf
output_dir: out
YAML
python hf_args.py run.yaml
