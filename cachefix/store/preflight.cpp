#include "cachefix/store/preflight.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/identity/own_host.hpp"
#include "sys/remote.hpp"

#include <algorithm>
#include <future>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_most_at_once = 32;

/// Read by the node's own sh. It says `good`, perhaps with a note, or `bad` and why. Names of file systems as stat(1)
/// has them.
constexpr std::string_view k_script = R"sh(
umask 077
directory=$1 min_kib=$2 min_inodes=$3 medium=$4 holds=$5
above=${directory%/*}
bad() { printf 'bad %s\n' "$*"; exit 0; }
if [ ! -d "$above" ]; then # root's is for every user, as /tmp is
  mode=0700
  [ "$(id -u)" -ne 0 ] || mode=1777
  install -d -m $mode -- "$above" 2>/dev/null
fi
[ -d "$directory" ] || mkdir -m 0700 -- "$directory" 2>/dev/null || bad "$directory cannot be made"
[ -O "$directory" ] && [ ! -L "$directory" ] || bad "$directory is not a directory of yours"
[ -z "$(find "$directory" -prune -perm /022)" ] || bad "others may write to $directory"
part=$above
while :; do
  [ -z "$(find -H "${part:-/}" -prune -perm /022 ! -perm -1000)" ] ||
    bad "$directory: others may write to ${part:-/}, which has no sticky bit"
  [ -n "$part" ] || break
  part=${part%/*}
done
type=$(stat -f -c %T -- "$directory")
case $type in
  nfs*|lustre|gpfs|ceph|smb*|cifs|fuse*|v9fs|afs|k-afs|autofs|coda|pvfs*|ocfs2|gfs*|acfs|vxfs|panfs|snfs|ibrix|fhgfs|beegfs)
    bad "$directory lies on shared storage ($type)" ;;
  tmpfs|ramfs) [ "$medium" = memory ] || note="$directory is memory ($type)" ;;
esac
set -- $(df -Pk -- "$directory" | tail -n 1)
[ "${4:-0}" -ge "$min_kib" ] || bad "$directory has $((${4:-0} / 1024)) MiB free"
set -- $(df -Pi -- "$directory" | tail -n 1)
case ${2:--} in
  -|0) ;;
  *) [ "${4:-0}" -ge "$min_inodes" ] || bad "$directory has ${4:-0} free inodes" ;;
esac
file=$(mktemp "$directory/.sharefs-lock-XXXXXX" 2>/dev/null) || bad "$directory cannot be written"
if command -v flock >/dev/null; then
  if ! flock -n "$file" true 2>/dev/null || flock -n "$file" flock -n "$file" true 2>/dev/null; then works=no; fi
fi
if [ "$holds" = code ]; then
  printf '#!/bin/sh\n' >"$file"
  chmod 0700 "$file" && "$file" 2>/dev/null || runs=no
fi
rm -f -- "$file"
[ "${runs:-yes}" = yes ] || bad "$directory is mounted noexec, and compiled caches are mapped from there"
[ "${works:-yes}" = yes ] || bad "file locks do not exclude each other in $directory"
echo good ${note:+"$note"}
)sh";

NodeReport ask(sys::System& system, const std::string& host, const std::string& directory, Holds holds,
               const LocalChoice& choice, std::chrono::milliseconds deadline) {
  const bool given = std::ranges::any_of(choice.directories, [&](const std::string& one) {
    const LocalDirectory named = expand_directory(one, choice.environment);
    return named.given && is_under(directory, named.path);
  });
  sys::RemoteRequest request;
  request.host = host;
  request.script =
      "set -- " +
      shell_join({directory, std::to_string(choice.min_free_bytes / 1024), std::to_string(k_least_free_inodes),
                  given ? "memory" : "disk", holds == Holds::code ? "code" : "data"}) +
      std::string(k_script);
  request.deadline = std::chrono::ceil<std::chrono::seconds>(deadline);
  const auto said = sys::ask_remote(system, request);
  using enum NodeReport::State;
  if (!said)
    return {host, unknown, said.error().message};
  const std::string answer(trim(*said));
  if (answer == "good" || answer.starts_with("good "))
    return {host, good, to_utf8(trim(answer.substr(4)))};
  if (answer.starts_with("bad "))
    return {host, bad, to_utf8(answer.substr(4))};
  return {host, unknown, "its shell did not answer the question"};
}

} // namespace

std::vector<NodeReport> check_nodes(sys::System& system, const std::vector<std::string>& hosts,
                                    const std::string& directory, Holds holds, const LocalChoice& choice,
                                    std::chrono::milliseconds deadline) {
  const sys::Identity identity = system.identity();
  std::vector<std::string> others;
  std::ranges::copy_if(hosts, std::back_inserter(others),
                       [&](const std::string& host) { return !sys::is_this_host(identity, host); });
  std::vector<NodeReport> reports;
  for (std::size_t begin = 0; begin < others.size(); begin += k_most_at_once) {
    std::vector<std::future<NodeReport>> asked;
    for (std::size_t i = begin; i < std::min(others.size(), begin + k_most_at_once); ++i)
      asked.push_back(std::async(std::launch::async,
                                 [&, i] { return ask(system, others[i], directory, holds, choice, deadline); }));
    for (auto& one : asked)
      reports.push_back(one.get());
  }
  return reports;
}

} // namespace sharefs::cachefix
