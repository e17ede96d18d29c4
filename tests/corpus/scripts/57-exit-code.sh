#!/bin/bash
# where: the program's own exit code
# env: STANDIN_EXIT=9
export HF_HOME=/share/hf
python main.py
code=$?
echo "ended with $code"
exit $code
