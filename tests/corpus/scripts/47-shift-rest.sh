#!/bin/bash
# where: $1, then the rest
CONFIG_FILE=${1:-plain.yaml}
export HF_HOME=/share/hf
python main.py --config $CONFIG_FILE "${@:2}"
