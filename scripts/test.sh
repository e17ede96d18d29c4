#!/usr/bin/env bash
# Sets up the machine, builds, and runs every test. The last line is `N passed, N failed, N skipped`.
#
# usage: scripts/test.sh [--quick]
#   --quick   only the unit and golden tests
#
# SHAREFS_SKIP_LAB=1       leave out the tests on real kernel NFS (counted as skipped)
# SHAREFS_FUZZ_SECONDS=N   how long each fuzz target runs (default 30)
set -euo pipefail
cd "$(dirname "$0")/.."

quick=no
case "${1:-}" in
  --quick) quick=yes ;;
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") ;;
  *) echo "error: unknown argument \`$1\`" >&2; echo "hint: run \`scripts/test.sh --help\`" >&2; exit 2 ;;
esac

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

say() { printf '\n== %s (%ds)\n' "$*" "$SECONDS"; }

# Builds a preset; a build that fails is a failed test, and the end.
build() {
  say "build $1"
  if ! { cmake --preset "$1" "${@:2}" >"$results/log" 2>&1 && cmake --build --preset "$1" >>"$results/log" 2>&1; }; then
    tail -n 60 "$results/log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
  fi
}

# Runs the tests of a preset's build directory with the labels that match; failures are counted at the end.
run() {
  say "test $1: $2"
  ctest --test-dir "build/$1" -L "$2" -j "$3" --output-on-failure --no-tests=error \
        --output-junit "$results/$1-$2.xml" || true
}

say "set-up"
./scripts/setup.sh

build ci
run ci 'unit|golden' 2
if [ "$quick" = no ]; then
  run ci lab 2
  build fuzz -DSHAREFS_FUZZ_SECONDS="${SHAREFS_FUZZ_SECONDS:-30}"
  run fuzz fuzz 2
fi

say "result"
exec /usr/bin/python3 tests/support/count.py "$results"/*.xml
