#!/bin/bash
# where: a job that is written line by line
J=job_a.sh
echo '#!/bin/bash' > $J
echo 'export PYTHONPATH=src' >> $J
echo 'python train.py --cache_dir /share/hf' >> $J
bash $J
