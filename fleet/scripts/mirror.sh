work=$1 name=$2 dir=$3 locks=/var/lib/sharefs/mirror; shift 3;
say() { echo "@sharefs $1 $2" >&2; }; no() { say failed "$1"; exit 100; };
command -v "$1" >/dev/null || no "rsync is not installed there";
at=; set -f; IFS=/;
for part in ${dir#/}; do at=$at/$part;
  [ ! -L "$at" ] || { [ "$at" != "$dir" ] && [ "$(stat -c %u "$at")" = 0 ]; } ||
  no "$dir: $at is a symbolic link there"; done;
unset IFS;
[ -d "$dir" ] || [ ! -e "$dir" ] || no "$dir is no directory there";
[ -d "$dir" ] || say missing yes;
near=$dir; until [ -d "$near" ]; do near=${near%/*}; near=${near:-/}; done;
say room "$(stat -f -c "%a %S %i" "$near")";
[ "$work" = push ] || exec "$@";
said=$(mkdir -p "$dir" 2>&1) || no "cannot begin: $said";
said=$(umask 077; { mkdir -p "$locks" && : >>"$locks/$name.lock"; } 2>&1) || no "cannot begin: $said";
exec 9>>"$locks/$name.lock"; flock -n 9 ||
  { [ $? != 1 ] || no "$dir: another push to it is at work"; no "cannot begin: no flock(1)"; };
"$@"; code=$?; sync -f "$dir" 2>/dev/null || sync; exit $code
