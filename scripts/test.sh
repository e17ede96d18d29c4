#!/usr/bin/env bash
# Sets up the machine, builds, and runs every test. The last line is `N passed, N failed, N skipped`.
#
# usage: scripts/test.sh [--quick | --bare | --long]
#   --quick   only the unit and golden tests, and the checks of the tree
#   --bare    only the README's first hour, its demo too, in a Debian on which nothing is installed
#   --long    also what takes hours: all 81 rows of the fault matrix, each attack 100 times, the fuzzers, the guard with
#             every version of datasets, the demo on a bare machine, and the benches that know their goals (they need a
#             machine on which nothing else runs)
#
# SHAREFS_SKIP_LAB=1       leave out the tests on real kernel NFS (counted as skipped)
# SHAREFS_FUZZ_SECONDS=N   how long each fuzz target runs in --long (default 60)
# SHAREFS_FUZZ_SEED=N      where they begin (default 1); 0: somewhere else each time
set -euo pipefail
cd "$(dirname "$0")/.."

scope=usual
case "${1:-}" in
  --quick | --bare | --long) scope=${1#--} ;;
  -h | --help) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "") ;;
  *) echo "error: unknown argument \`$1\`" >&2; echo "hint: run \`scripts/test.sh --help\`" >&2; exit 2 ;;
esac

# The lab's own tests run where the lab is not the one with which they have passed before.
readonly lab_verified=tests/lab/verified
lab_digest() {
  { linux.uml --version
    find tests/lab/guest tests/lab/host tests/lab/sharefslab tests/lab/conftest.py tests/lab/test_lab_itself.py tests/lab/test_boot_lab.py \
      -name '*.[chp]*' -type f -not -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 cat; } | sha256sum | cut -d' ' -f1
}

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

# In the locale of the bare machine (tests/bare/bare.py), so that ccache gives it what was compiled here.
build() { (unset LANG LC_CTYPE LC_MESSAGES; export LC_ALL=C.UTF-8; cmake --preset "$1" "${@:2}" && cmake --build --preset "$1"); }

# Runs a command while something else is under way and leaves the processor to that: what the tests wait for is used.
begin() {
  set -m # a process group of its own, by which it can be ended
  { renice -n 5 "$BASHPID" >/dev/null; "${@:2}"; } >"$results/$1.log" 2>&1 </dev/null &
  set +m
  background+=($!)
}

# Waits for the last one that began.
finish() {
  say "wait for: $1"
  local pid=${background[-1]}
  unset 'background[-1]'
  wait "$pid" || broken "$results/$1.log"
  tail -n 40 "$results/$1.log"
}

# Runs the tests of a preset's build directory with the labels that match; failures are counted at the end.
run() {
  say "test $1: $2"
  ctest --test-dir "build/$1" -L "$2" -j "$3" --output-on-failure --no-tests=error "${@:4}" \
        --output-junit "$results/$1-${2//[^a-z]/-}.xml" || true
}

# The same of tests of the lab: as many at a time as the cores have slots, four each (tests/lab/CMakeLists.txt).
run_lab() {
  local cores
  cores=$(nproc)
  printf '{"version": {"major": 1, "minor": 0}, "local": [{"core": [%s]}]}' \
    "$(seq -s, -f '{"id": "%g", "slots": 4}' 0 $((cores - 1)))" >"$results/cores.json"
  run ci "$1" $((4 * cores)) --resource-spec-file "$results/cores.json"
}

say "set-up"
if [ "$scope" = bare ]; then
  ./scripts/setup.sh --test --lab
  SHAREFS_BARE_DEMO=1 PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m pytest -q -p no:cacheprovider --durations=0 tests/bare
  exit
fi
if [ "$scope" = long ]; then
  export SHAREFS_LONG=1 SHAREFS_BARE_DEMO=1 SHAREFS_ATTACKS="${SHAREFS_ATTACKS:-100}" SHAREFS_GUARD_VERSIONS=all
fi
./scripts/setup.sh --test
[ "$scope" = quick ] || begin lab-packages ./scripts/setup.sh --lab

say "build ci"
build ci >"$results/ci.log" 2>&1 || broken "$results/ci.log"
[ "$scope" = quick ] || finish lab-packages
if [ "$scope" = quick ]; then run ci 'unit|golden|check' 2; else run ci 'unit|golden|check|long' 2; fi
if [ "$scope" != quick ]; then
  begin bare run ci bare 1
  digest=$(lab_digest)
  if [ "$scope" != long ] && [ "$digest" = "$(cat "$lab_verified" 2>/dev/null)" ]; then
    run_lab '^lab$'
  else
    run_lab '^(lab|itself)$'
    # To be committed with the change.
    if /usr/bin/python3 tests/support/count.py --only lab.lab_itself,lab.boot_lab "$results"/ci-*lab-itself*.xml >/dev/null; then
      echo "$digest" >"$lab_verified"
    fi
  fi
  finish bare
fi
if [ "$scope" = long ]; then
  say "build fuzz"
  build fuzz -DSHAREFS_FUZZ_SECONDS="${SHAREFS_FUZZ_SECONDS:-60}" -DSHAREFS_FUZZ_SEED="${SHAREFS_FUZZ_SEED:-1}" \
    >"$results/fuzz.log" 2>&1 || broken "$results/fuzz.log"
  run fuzz fuzz 2
  say "build release"
  build release >"$results/release.log" 2>&1 || broken "$results/release.log"
  for bench in startup fleet mounts watch; do
    say "bench $bench"
    SHAREFS_BIN=$PWD/build/release/sharefs "tests/bench/$bench.py" || echo "$bench: a goal is missed"
  done
fi

say "result"
/usr/bin/python3 tests/support/count.py "$results"/*.xml
