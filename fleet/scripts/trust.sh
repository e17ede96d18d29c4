# Gives ssh, and launchers that go from node to node, what they need on a node to log in. `grant` names it, `work` is check
# (say `pending` where something is missing), add, or remove. report.sh, and lines that set grant, work, mark and comment,
# stand in front. There are no single quotes, because the text is quoted twice, for two shells.
set -u
# Lines are compared word by word, so that options in front of a key and comments behind it do not matter.
missing_lines() {
  awk -v file="$1" -v tail="${comment:+$comment }$mark" "
    BEGIN {
      while ((getline < file) > 0)
        if (\$1 !~ /^#/)
          for (i = 1; i <= NF; i++)
            for (words = \$(j = i); j < NF && j < i + 3; there[words] = 1) words = words \" \" \$(++j)
    }
    NF && !(\$0 in there) { there[\$0] = 1; print \$0 \" \" tail }"
}
# Makes sure that the lines of stdin are in this file; for remove, that no line has the mark. A file is replaced by a
# rename, and keeps its mode and owner; a link to it stays.
change_lines() {
  file=$(readlink -f "$1" 2>/dev/null) || file=$1
  new=$file.sharefs-new count=0
  if [ "$work" = remove ]; then
    lines=$(grep -e " $mark\$" "$file" 2>/dev/null)
  else
    lines=$(missing_lines "$file") || no "awk does not run there"
  fi
  [ -z "$lines" ] || count=$(echo "$lines" | grep -c "")
  [ "$count" != 0 ] && [ "$work" != check ] || return 0
  trap "rm -f \"\$new\"" EXIT
  { [ ! -e "$file" ] || cp -p "$file" "$new"; } 2>/dev/null || no "$new cannot be written there"
  if [ "$work" = remove ]; then
    grep -v -e " $mark\$" "$file"
    [ $? -le 1 ]
  else
    { [ ! -e "$file" ] || cat "$file"; } && { [ -z "$(tail -c 1 "$file" 2>/dev/null)" ] || echo; } && echo "$lines"
  fi >"$new" || no "$new cannot be written there"
  { sync "$new" 2>/dev/null || sync; } && mv -f "$new" "$file" || no "$file cannot be written there"
  if command -v restorecon >/dev/null; then restorecon "$file" 2>/dev/null; fi
}
# Ends with a report of what is missing, or of what was done.
end_lines() {
  [ "$work" != check ] || [ "$count" = 0 ] || { say pending "$1"; count=0; }
  [ "$count" = 0 ] && end_well "" || end_well "$1"
}
own=/etc/ssh/sshd_config.d/10-sharefs.conf
back() { if [ -e "$own.old" ]; then mv -f "$own.old" "$own"; else rm -f "$own"; fi; no "$1"; }
# Sets the lines of one keyword in a file of our own; if sshd rejects it, the old file is put back.
set_sshd() {
  mkdir -p /etc/ssh/sshd_config.d || no "/etc/ssh cannot be written"
  rm -f "$own.old"
  [ ! -e "$own" ] || cp -p "$own" "$own.old" || no "$own.old cannot be written"
  { echo "# Written by sharefs nodes trust"
    grep -v -e "^#" -e "^$1 " "$own.old" 2>/dev/null
    [ -z "$2" ] || echo "$2"; } >"$own.new" && mv -f "$own.new" "$own" || back "$own cannot be written"
  grep -q "^[^#]" "$own" || rm -f "$own"
  said=$(sshd -t 2>&1) || back "sshd does not take it: $said"
  [ -z "$2" ] || sshd -T 2>/dev/null | grep -qixF "$(echo "$2" | tail -n 1)" ||
    back "sshd_config there does not include sshd_config.d/*.conf"
  rm -f "$own.old"
  if [ -d /run/systemd/system ]; then
    systemctl reload ssh 2>/dev/null || systemctl reload sshd 2>/dev/null || no "sshd cannot be reloaded: systemctl reload ssh"
  else
    kill -HUP "$(cat /run/sshd.pid)" 2>/dev/null || no "sshd cannot be reloaded: it says nothing in /run/sshd.pid"
  fi
}

# The public key of the user in authorized_keys; stdin has "TYPE KEY".
grant_key() {
  umask 077
  [ "$work" != add ] || mkdir -p "$HOME/.ssh" 2>/dev/null || no "$HOME/.ssh cannot be written there"
  change_lines "$HOME/.ssh/authorized_keys"
  end_lines "the key in ~/.ssh/authorized_keys"
}

# Certificates of an authority for the host keys; stdin has its fingerprint (check), or lines "PATH CERTIFICATE" (add).
grant_hosts() {
  umask 022
  if [ "$work" = check ]; then
    read -r authority
    keys=$(sshd -T 2>/dev/null | sed -n "s/^hostkey //p")
    [ "$keys" ] || no "sshd there does not say which host keys it has"
    lacks=
    for file in $keys; do
      [ -r "$file.pub" ] || continue
      ssh-keygen -Lf "$file-cert.pub" 2>/dev/null | grep -qF -e "$authority" &&
        sshd -T 2>/dev/null | grep -qxF "hostcertificate $file-cert.pub" || lacks=yes
      say hostkey "$file.pub $(cut -d " " -f 1,2 "$file.pub")"
    done
    [ -z "$lacks" ] || say pending "certificates of the host keys"
    end_well ""
    exit 0
  fi
  if [ "$work" = remove ]; then
    files=$(sed -n "s/^HostCertificate //p" "$own" 2>/dev/null)
    [ "$files" ] || { end_well ""; exit 0; }
    set_sshd HostCertificate ""
    rm -f $files
    end_well "certificates of the host keys"
    exit 0
  fi
  lines=
  while read -r path certificate; do
    case $path in /*.pub) ;; *) no "a certificate came without its place" ;; esac
    file=${path%.pub}-cert.pub
    echo "$certificate" >"$file.new" && mv -f "$file.new" "$file" || no "$file cannot be written"
    lines="${lines:+$lines
}HostCertificate $file"
  done
  [ "$lines" ] || no "no certificate came"
  set_sshd HostCertificate "$lines"
  end_well "certificates of the host keys"
}

# An authority whose user certificates sshd accepts; stdin has "TYPE KEY". sshd reads one file of authorities: a file
# that the site has set is kept, and gets one more line.
grant_users() {
  umask 022
  mine=/etc/ssh/sharefs_user_ca.pub
  keys=$(sshd -T 2>/dev/null | sed -n "s/^trustedusercakeys //p")
  [ "$keys" ] || no "sshd there does not report whose certificates it accepts"
  [ "$keys" != none ] || keys=
  change_lines "${keys:-$mine}"
  if [ "$work" = remove ]; then
    if [ "$keys" = "$mine" ] && [ ! -s "$mine" ]; then set_sshd TrustedUserCAKeys ""; rm -f "$mine"; fi
  elif [ -z "$keys" ]; then
    count=1
    [ "$work" = check ] || set_sshd TrustedUserCAKeys "TrustedUserCAKeys $mine"
  fi
  end_lines "the authority of user certificates"
}

# Host keys of all nodes in /etc/ssh/ssh_known_hosts; stdin has these lines.
grant_mesh() {
  umask 022
  change_lines /etc/ssh/ssh_known_hosts
  end_lines "$count lines of /etc/ssh/ssh_known_hosts"
}

# Logs in, as the user, from this node to the one that stdin names; `options` are those of ssh.
grant_next() {
  read -r next
  said=$(ssh $options -o StrictHostKeyChecking=yes -- "$next" true 2>&1 </dev/null) ||
    no "from there to $next: $(printf %s "$said" | tail -n 1)"
  end_well ""
}

"grant_$grant"
