#!/bin/bash
# where: a launcher by the site
case "${SITE:-a}" in
  a) RUNNER="singularity exec image.sif" ;;
  b) RUNNER="" ;;
esac
$RUNNER python train.py --cache_dir /share/hf
