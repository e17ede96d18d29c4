work=$1 name=$2 dir=$3 locks=/var/lib/sharefs/mirror; shift 3;
say() { echo "@sharefs $1 $2" >&2; }; no() { say failed "$1"; exit 100; };
command -v "$1" >/dev/null || no "rsync is not installed there";
cd /; at= here= missing=; set -f; IFS=/;
for part in ${dir#/}; do
  at=$at/$part; enters=$here/$part;
  if [ -L "./$part" ]; then
    [ "$at" != "$dir" ] && [ "$(stat -c %u "./$part")" = 0 ] || no "$dir: $at is a symbolic link there";
    case $(stat -c "%u %A" .) in
      "0 d????-??-?" | "0 d"*[tT]) enters= ;;
      *) no "$dir: $at is a symbolic link there, and others could replace it" ;;
    esac;
  elif [ ! -e "./$part" ]; then
    missing=yes; [ "$work" = push ] || break;
    said=$(mkdir "./$part" 2>&1) || no "cannot begin: $said";
  fi;
  [ -d "./$part" ] || no "$dir is no directory there";
  said=$(cd -P "./$part" 2>&1) && cd -P "./$part" || no "$dir: $at cannot be entered there: $said";
  here=$(pwd -P); [ "$here" = "${enters:-$here}" ] || no "$dir: $at was replaced there";
done;
unset IFS;
[ -z "$missing" ] || say missing yes;
say room "$(stat -f -c "%a %S %i" .)";
if [ "$work" != push ]; then
  [ -z "$missing" ] || { cd /; named=; for word; do shift; [ "$word" != ./ ] || { word=./.sharefs-missing; named=yes; }; set -- "$@" "$word"; done;
    [ "$named" ] || no "rsync does not name its directory there"; };
  exec "$@";
fi;
said=$(umask 077; { mkdir -p "$locks" && : >>"$locks/$name.lock"; } 2>&1) || no "cannot begin: $said";
exec 9>>"$locks/$name.lock"; flock -n 9 ||
  { [ $? != 1 ] || no "$dir: another push to it is at work"; no "cannot begin: no flock(1)"; };
"$@"; code=$?; sync -f . 2>/dev/null || sync; exit $code
