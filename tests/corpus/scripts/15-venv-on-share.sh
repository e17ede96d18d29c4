#!/bin/bash
# where: a virtual environment on the share
. /share/venv/bin/activate
export HF_HOME=/share/hf
/share/venv/bin/python main.py --seed 1
