#!/usr/bin/env bash
# Sets up the machine, builds sharefs, and shows its main job on a throwaway NFS cluster on this machine: a real kernel NFS
# server and two client nodes in a User Mode Linux guest. Nothing is left behind.
#
# usage: scripts/demo.sh [--keep]
#   --keep   leave the cluster up at the end and tell how to enter it
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  "" | --keep) ;;
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "error: unknown argument \`$1\`" >&2; echo "hint: run \`scripts/demo.sh --help\`" >&2; exit 2 ;;
esac

./scripts/setup.sh --demo
# Lines of stdin one over the other on a terminal, nothing elsewhere.
show_progress() {
  local line
  while IFS= read -r line; do
    [[ ! -t 1 ]] || printf '\r\033[K%.78s' "$line"
  done
  [[ ! -t 1 ]] || printf '\r\033[K'
}

echo "building sharefs in build/release (minutes at the first time) ..."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake --preset release && cmake --build --preset release; } 2>&1 |
  tee "$log" | show_progress; then
  tail -n 40 "$log"
  exit 1
fi
SHAREFS_BIN="$PWD/build/release/sharefs" PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/lab \
  /usr/bin/python3 scripts/demo_story.py "$@"
