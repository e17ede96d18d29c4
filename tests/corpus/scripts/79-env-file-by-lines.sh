#!/bin/bash
# where: eval of exports in a loop over a file's lines
while IFS='=' read -r key value; do
  export "$key=$value"
done < .env
python main.py
