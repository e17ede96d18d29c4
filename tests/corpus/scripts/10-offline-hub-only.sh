#!/bin/bash
# where: only the hub's switch
export HF_HUB_OFFLINE=1
export HF_HOME=/share/hf
python main.py
