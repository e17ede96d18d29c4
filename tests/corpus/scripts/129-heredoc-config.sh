#!/bin/bash
# where: a configuration that mentions ssh and docker
cat > job.yaml <<EOT
# ssh node1 python train.py
run: docker run image python train.py
EOT
python train.py --cache_dir /share/hf
