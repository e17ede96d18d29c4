#include "fleet/trust.hpp"

#include "base/text.hpp"

namespace sharefs::fleet {

namespace {

constexpr std::string_view k_add_key = R"sh(
set -u
umask 077
read -r type key comment || [ -n "$key" ] || no "no key came"
directory=$HOME/.ssh file=$HOME/.ssh/authorized_keys
{ mkdir -p "$directory" && touch "$file"; } 2>/dev/null || no "$file cannot be written there"
if grep -qF -e "$type $key" "$file"; then
  end_well ""
  exit 0
fi
# A last line that has no end is ended first.
{ [ -z "$(tail -c 1 "$file")" ] || echo; echo "$type $key${comment:+ $comment}"; } >>"$file" || no "$file cannot be written there"
if command -v restorecon >/dev/null; then restorecon -R "$directory" 2>/dev/null; fi
end_well "key in authorized_keys"
)sh";

constexpr std::string_view k_host_keys = R"sh(
set -u
keys=$(sshd -T 2>/dev/null | sed -n "s/^hostkey //p")
[ "$keys" ] || no "sshd there does not say which host keys it has"
for file in $keys; do
  [ -r "$file.pub" ] || continue
  certified=no
  if ssh-keygen -Lf "$file-cert.pub" 2>/dev/null | grep -qF -e "$authority" &&
    sshd -T 2>/dev/null | grep -qxF "hostcertificate $file-cert.pub"; then certified=yes; fi
  say hostkey "$file.pub $certified $(cut -d " " -f 1,2 "$file.pub")"
done
say end ok
)sh";

constexpr std::string_view k_certify = R"sh(
set -u
umask 022
own=/etc/ssh/sshd_config.d/10-sharefs.conf
mkdir -p /etc/ssh/sshd_config.d || no "/etc/ssh cannot be written"
text="# Written by sharefs nodes trust --ca"
shown=
while read -r path certificate; do
  case $path in /*.pub) ;; *) no "a certificate came without its place" ;; esac
  file=${path%.pub}-cert.pub
  echo "$certificate" >"$file.new" && mv -f "$file.new" "$file" || no "$file cannot be written"
  text="$text
HostCertificate $file"
  shown=$file
done
[ "$shown" ] || no "no certificate came"
was=
if [ -e "$own" ]; then was=yes; cp -p "$own" "$own.old"; fi
back() { if [ "$was" ]; then mv -f "$own.old" "$own"; else rm -f "$own"; fi; no "$1"; }
echo "$text" >"$own.new" && mv -f "$own.new" "$own" || no "$own cannot be written"
said=$(sshd -t 2>&1) || back "sshd does not take it: $said"
sshd -T 2>/dev/null | grep -qxF "hostcertificate $shown" ||
  back "sshd_config there does not include sshd_config.d/*.conf"
rm -f "$own.old"
if [ -d /run/systemd/system ]; then
  systemctl reload ssh 2>/dev/null || systemctl reload sshd 2>/dev/null || no "sshd cannot be reloaded: systemctl reload ssh"
else
  kill -HUP "$(cat /run/sshd.pid)" 2>/dev/null || no "sshd cannot be reloaded: it says nothing in /run/sshd.pid"
fi
end_well "host certificates"
)sh";

constexpr std::string_view k_known_hosts = R"sh(
set -u
umask 022
file=/etc/ssh/ssh_known_hosts
mkdir -p /etc/ssh
{ if [ -e "$file" ]; then cat "$file"; fi; } >"$file.new" || no "$file cannot be written"
[ -z "$(tail -c 1 "$file.new")" ] || echo >>"$file.new"
missing=0
while read -r line; do
  [ -n "$line" ] || continue
  grep -qxF -e "$line" "$file.new" || { echo "$line" >>"$file.new"; missing=$((missing + 1)); }
done
if [ "$missing" = 0 ] || [ "$check" ]; then
  rm -f "$file.new"
  [ "$missing" = 0 ] || say missing "$missing"
  end_well ""
  exit 0
fi
if [ -e "$file" ]; then cp -p "$file" "$file.old"; fi
mv -f "$file.new" "$file" || no "$file cannot be written"
end_well "known_hosts of the machine"
)sh";

constexpr std::string_view k_next_node = R"sh(
set -u
read -r next
said=$(ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=5 -- "$next" true 2>&1 </dev/null) ||
  no "from there to $next: $(printf %s "$said" | tail -n 1)"
end_well ""
)sh";

} // namespace

std::string login_script() {
  return std::string(k_script_functions) + "end_well \"\"\n";
}

std::string add_key_script() {
  return std::string(k_script_functions) + std::string(k_add_key);
}

std::string host_keys_script(const std::string& authority_fingerprint) {
  return std::string(k_script_functions) + assign("authority", authority_fingerprint) + std::string(k_host_keys);
}

std::optional<std::vector<OwnHostKey>> parse_own_host_keys(std::string_view out) {
  std::vector<OwnHostKey> keys;
  bool is_whole = false;
  for (const auto& [key, value] : said_lines(out)) {
    const auto words = split_words(value);
    if (key == "hostkey" && words.size() == 4)
      keys.push_back({words[0], words[2] + " " + words[3], words[1] == "yes"});
    is_whole = is_whole || key == "end";
  }
  return is_whole ? std::optional(keys) : std::nullopt;
}

std::string certify_script() {
  return std::string(k_script_functions) + std::string(k_certify);
}

std::string known_hosts_script(bool check) {
  return std::string(k_script_functions) + assign("check", check ? "yes" : "") + std::string(k_known_hosts);
}

std::string next_node_script() {
  return std::string(k_script_functions) + std::string(k_next_node);
}

} // namespace sharefs::fleet
