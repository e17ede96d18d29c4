#!/bin/bash
# where: train, then evaluate with the same cache
export TRANSFORMERS_CACHE=/share/models
python train.py --cache_dir /share/hf --output_dir out
python eval.py --model out
lm_eval --model hf --model_args pretrained=out --tasks arc
