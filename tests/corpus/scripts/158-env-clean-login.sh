#!/bin/bash
# where: jobs of sites and frameworks of 2025
exec env -i HOME="$HOME" PATH=/usr/bin:/bin bash -l -c "cd $PWD && source venv/bin/activate && python train.py"
