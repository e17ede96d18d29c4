# Says what is installed of sharefs on this machine (`work` is ask), or installs what comes in a tar archive on stdin:
# `sharefs.yaml`, and where a node gets more, `sharefs` and `share`, or `sharefs.deb`. Each file is written as NAME.new, tried, and renamed; the old
# one is kept as NAME.old. If a file fails its trial nothing is changed. report.sh, and lines that set the variables, stand
# in front. There are no single quotes, because the text is quoted twice, for two shells.
sum() { sha256sum <"$1" | cut -c 1-64; }
sums() {
  (cd "$1" 2>/dev/null || exit 0
   find -L . -type f ! -name "*.pyc" | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c 1-64)
}
# Finds the place of the program: where it is, or where it will be.
find_program() {
  program=$(command -v sharefs 2>/dev/null) && program=$(readlink -f "$program") || program=$prefix/bin/sharefs
  guard=$(dirname "$(dirname "$program")")/share/sharefs
}
# Nothing is changed if a file could not be renamed to its place in the end.
check_place() { [ ! -d "$1" ] && [ ! -d "$1.new" ] || no "$1 or $1.new is a directory there"; }
version_of_package() {
  if dpkg-query -S "$1" >/dev/null 2>&1; then
    dpkg-query -W -f "\${Version}" sharefs
  elif rpm -qf "$1" >/dev/null 2>&1; then
    rpm -qf "$1"
  fi
}

say_installed() {
  say machine "$(uname -m)"
  if [ -e "$program" ]; then
    say program "$program"
    say program_sum "$(sum "$program")"
    say package "$(version_of_package "$program")"
  fi
  if [ -d "$guard" ]; then say guard_sum "$(sums "$guard")"; fi
  if [ -e "$config" ]; then say config_sum "$(sum "$config")"; fi
  if [ -L "$config" ]; then say config_is_link yes; fi
  say end ok
}

# Renames NAME.new, which was written beside its place, over NAME; the old file is kept as NAME.old.
replace() {
  sync "$1.new" 2>/dev/null || sync
  if [ -e "$1" ]; then ln -f "$1" "$1.old" || cp -p "$1" "$1.old" || return 1; fi
  mv -f "$1.new" "$1"
}

prepare_program() {
  find_program
  check_place "$program"
  rm -rf "$program.new" "$guard.new" # of a push that was killed
  checker=$program
  if [ ! -e "$program" ] || [ "$(sum "$program")" != "$program_sum" ]; then
    [ -e "$d/sharefs" ] || no "$program was changed meanwhile; run the command again"
    [ "$(sum "$d/sharefs")" = "$program_sum" ] || no "the files did not arrive completely"
    new="$new $program.new"
    said=$(mkdir -p "$(dirname "$program")" 2>&1 && cp "$d/sharefs" "$program.new" 2>&1 && chmod 755 "$program.new" 2>&1) ||
      no "$said"
    said=$("$program.new" --version 2>&1) || no "this program does not run there: $said"
    [ "$said" = "$version" ] || no "the program reports another version there: $said"
    checker=$program.new
  fi
  if [ -d "$d/share" ] && [ "$(sums "$guard")" != "$(sums "$d/share")" ]; then
    [ ! -e "$guard" ] || [ -d "$guard" ] || no "$guard is no directory there"
    new="$new $guard.new"
    said=$(mkdir -p "$(dirname "$guard")" 2>&1 && cp -R "$d/share" "$guard.new" 2>&1 && chmod -R u=rwX,go=rX "$guard.new" 2>&1) ||
      no "$said"
  fi
}

# apt-get also installs the libraries that the package needs.
install_package() {
  if [ "$(dpkg-query -W -f "\${Version}" sharefs 2>/dev/null)" != "$package" ]; then
    command -v dpkg >/dev/null || no "there is no dpkg there"
    export DEBIAN_FRONTEND=noninteractive
    if command -v apt-get >/dev/null; then
      said=$(apt-get -q -y --no-install-recommends --allow-downgrades -o Dpkg::Options::=--force-confold \
        install "$d/sharefs.deb" 2>&1 </dev/null) || no "apt-get: $(printf %s "$said" | tail -n 3)"
    else
      said=$(dpkg -i "$d/sharefs.deb" 2>&1) || no "dpkg: $(printf %s "$said" | tail -n 3)"
    fi
    changed="package, "
  fi
  find_program
  checker=$program
  "$checker" --version >/dev/null 2>&1 || no "the package is installed, and its program does not run"
}

prepare_config() {
  rm -f "$config.new" 2>/dev/null
  if ! cmp -s "$d/sharefs.yaml" "$config"; then
    [ ! -L "$config" ] || no "$config is a symbolic link there"
    check_place "$config"
    new="$new $config.new"
    said=$(mkdir -p /etc/sharefs 2>&1 && cp "$d/sharefs.yaml" "$config.new" 2>&1 && chmod 644 "$config.new" 2>&1) ||
      no "$said"
    said=$("$checker" config check "$config.new" 2>&1) || no "sharefs there rejects this sharefs.yaml: $said"
  fi
}

# Puts the old guard back, unless all has gone well since it was replaced.
restore_guard() {
  if [ "$old_guard" = none ]; then
    rm -rf "$guard"
  elif [ "$old_guard" ] && [ -d "$guard.old" ]; then
    rm -rf "$guard" && mv "$guard.old" "$guard"
  fi
}

replace_program() {
  if [ -d "$guard.new" ]; then
    old_guard=none
    if [ -d "$guard" ]; then
      rm -rf "$guard.old"
      old_guard=kept
      mv "$guard" "$guard.old" || no "$guard cannot be kept"
    fi
    mv "$guard.new" "$guard" || no "$guard cannot be written"
    changed="${changed}guard, "
  fi
  if [ -e "$program.new" ]; then
    was=
    [ ! -e "$program" ] || was=yes
    replace "$program" || no "$program cannot be replaced"
    hash -r
    found=$(command -v sharefs) && said=$("$found" --version 2>&1) || said="no sharefs is found in PATH"
    if [ "$said" != "$version" ]; then
      if [ "$was" ]; then mv -f "$program.old" "$program"; else rm -f "$program"; fi
      no "the old program was put back: $said"
    fi
    changed="${changed}program, "
    if [ -d /run/systemd/system ]; then systemctl try-restart sharefs-watch.service >/dev/null 2>&1; fi
  fi
  old_guard=
}

if [ "$work" = ask ]; then
  [ "$program" ] || find_program
  say_installed
  exit 0
fi
set -u
umask 022
config=/etc/sharefs/sharefs.yaml new= changed= old_guard=
d=$(mktemp -d /var/tmp/sharefs-push.XXXXXX 2>&1) || no "$d"
trap "restore_guard; rm -rf \$d \$new" EXIT
trap "exit 1" HUP INT TERM
said=$(tar -x -o -f - -C "$d" 2>&1) || no "the files did not arrive completely: $said"
if [ "$package" ]; then install_package; else prepare_program; fi
prepare_config
[ "$package" ] || replace_program
if [ -e "$config.new" ]; then
  replace "$config" || no "$config cannot be replaced"
  changed="${changed}sharefs.yaml, "
fi
end_well "${changed%, }"
