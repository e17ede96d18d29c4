#!/usr/bin/env bash
# Sets up the machine, builds, and runs every test. The last line is `N passed, N failed, N skipped`.
#
# usage: scripts/test.sh [--quick | --bare]
#   --quick   only the unit and golden tests
#   --bare    only the README's first hour, its demo too, in a Debian on which nothing is installed
#
# SHAREFS_SKIP_LAB=1       leave out the tests on real kernel NFS (counted as skipped)
# SHAREFS_FAULTS=1         also the fault matrix: 83 ways to break a machine, 15 minutes more
# SHAREFS_FUZZ_SECONDS=N   how long each fuzz target runs (default 20)
# SHAREFS_FUZZ_SEED=N      where they begin (default 1); 0: somewhere else each time, for long runs
set -euo pipefail
cd "$(dirname "$0")/.."

quick=no
bare=no
case "${1:-}" in
  --quick) quick=yes ;;
  --bare) bare=yes ;;
  -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") ;;
  *) echo "error: unknown argument \`$1\`" >&2; echo "hint: run \`scripts/test.sh --help\`" >&2; exit 2 ;;
esac

results=$(mktemp -d)
background=()
end() {
  local pid
  for pid in "${background[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
  rm -rf "$results"
}
trap end EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s (%ds)\n' "$*" "$SECONDS"; }

# The end of a step that the tests cannot do without.
broken() {
  tail -n 60 "$1"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
}

build() { cmake --preset "$1" "${@:2}" && cmake --build --preset "$1"; }

# Runs a command while something else is under way and leaves the processor to that: what the tests wait for is used.
begin() {
  set -m # a process group of its own, by which it can be ended
  { renice -n 19 "$BASHPID" >/dev/null; "${@:2}"; } >"$results/$1.log" 2>&1 </dev/null &
  set +m
  background+=($!)
}

# Waits for the last one that began.
finish() {
  say "wait for: $1"
  local pid=${background[-1]}
  unset 'background[-1]'
  wait "$pid" || broken "$results/$1.log"
}

# Runs the tests of a preset's build directory with the labels that match; failures are counted at the end.
run() {
  say "test $1: $2"
  ctest --test-dir "build/$1" -L "$2" -j "$3" --output-on-failure --no-tests=error \
        --output-junit "$results/$1-$2.xml" || true
}

# The fuzzers, and then what the README prints in a root that has nothing, where the program is built once more.
build_fuzz_and_bare() {
  build fuzz -DSHAREFS_FUZZ_SECONDS="${SHAREFS_FUZZ_SECONDS:-20}" -DSHAREFS_FUZZ_SEED="${SHAREFS_FUZZ_SEED:-1}"
  run ci bare 1
}

say "set-up"
if [ "$bare" = yes ]; then
  ./scripts/setup.sh --test --lab
  SHAREFS_BARE_DEMO=1 PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m pytest -q -p no:cacheprovider --durations=0 tests/bare
  exit
fi
./scripts/setup.sh --test
[ "$quick" = yes ] || begin lab-packages ./scripts/setup.sh --lab

say "build ci"
build ci >"$results/ci.log" 2>&1 || broken "$results/ci.log"
[ "$quick" = yes ] || finish lab-packages
run ci 'unit|golden' 2
if [ "$quick" = no ]; then
  begin build-fuzz-and-bare build_fuzz_and_bare
  run ci lab 3
  finish build-fuzz-and-bare
  run fuzz fuzz 2
fi

say "result"
/usr/bin/python3 tests/support/count.py "$results"/*.xml
