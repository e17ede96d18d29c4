#!/bin/bash
# where: an NFS home, nothing said
# env: HOME=/share/home/me
source ~/.bashrc
python main.py
