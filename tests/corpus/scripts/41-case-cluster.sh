#!/bin/bash
# where: a case for each cluster
# env: CLUSTER=euler
case "${CLUSTER:-local}" in
  euler) export HF_DATASETS_CACHE=/share/d ;;
  local) export HF_DATASETS_CACHE=/scratch/d ;;
  *) echo unknown; exit 2 ;;
esac
python main.py
