#!/bin/bash
# where: .env only where it exists
set -euo pipefail
if [ -f .env ]; then set -a; source .env; set +a; fi
python main.py
