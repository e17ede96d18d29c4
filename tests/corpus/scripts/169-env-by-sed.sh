#!/bin/bash
# where: an environment that is changed on the way
printf 'HF_HOME=/share/hf\nPYTHONPATH=src\n' > a.env
source <(grep -v '^#' a.env | sed 's/^/export /')
python main.py
