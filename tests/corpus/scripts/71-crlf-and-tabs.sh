#!/bin/bash
# where: tabs and odd spacing
export	HF_DATASETS_CACHE=/share/d  ;	python	main.py   --a   "b  c"
