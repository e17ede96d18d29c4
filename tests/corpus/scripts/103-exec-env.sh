#!/bin/bash
# where: the last line replaces the shell
export HF_HOME=/share/hf
exec env -i PATH="$PATH" HOME="$HOME" python main.py
