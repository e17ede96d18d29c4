#!/bin/bash
# `python3` for the launches of a race: asks the warm interpreter of this host (race_worker.py) to be it. That one
# reads from /proc what this process was started with, and leaves the output in two files.
# With options, as sharefs reads a source with it, it is another one.
[[ ${1-} != -* ]] || exec /usr/bin/python3 "$@"
exec 3<>/dev/tcp/127.0.0.1/7001 || exit 1
echo $$ >&3
read -r code output <&3 || exit 1
printf '%s' "$(<"$output.out")"
printf '%s' "$(<"$output.err")" >&2
((code >= 0)) || kill "$code" $$
exit "$code"
