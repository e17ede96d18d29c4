#!/bin/bash
# where: DeepSpeed with a base directory
PROJ_DIR=/share/proj
export HF_DATASETS_CACHE=${PROJ_DIR}/.cache/
export TRANSFORMERS_CACHE=${PROJ_DIR}/.cache/
export WORLD_SIZE=$((8 * 2))
deepspeed --num_gpus 8 --master_port 29501 main.py --deepspeed ds_config.json --output_dir ${PROJ_DIR}/out
