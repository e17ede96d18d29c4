#!/bin/bash
# where: .env is exported as a whole
set -euo pipefail
cd "$(dirname "$0")"
set -a; source .env; set +a
mkdir -p logs
{
  echo "started"
  python -m pkg.train --method a "$@"
} 2>&1 | tee -a logs/run.txt
