# Reports of a script on a node: `say KEY TEXT` reports; `no TEXT` reports a failure and ends; `end_well TEXT` ends, and
# TEXT is the change.
say() { printf "@sharefs %s %s\n" "$1" "$(printf %s "$2" | tr "\n" " ")"; }
no() { say failed "$1"; exit 1; }
end_well() { say changed "$1"; say end ok; }
