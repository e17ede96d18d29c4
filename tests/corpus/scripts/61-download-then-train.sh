#!/bin/bash
# where: a hub client first
export HF_HOME=/share/hf
huggingface-cli download gpt2 --local-dir /share/models/gpt2
hf download a/b --repo-type dataset
python main.py --model /share/models/gpt2
