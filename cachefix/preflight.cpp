#include "cachefix/preflight.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <future>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_most_at_once = 32;
constexpr int k_ssh_failed = 255; // ssh(1), "EXIT STATUS"

/// Read by the node's own sh. It says `good`, or `bad` and why. Names of file systems as stat(1) has them.
constexpr std::string_view k_script = R"sh(
umask 077
directory=$1 min_kib=$2 min_inodes=$3
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
  nfs*|lustre|gpfs|ceph|smb*|cifs|fuse*|afs|autofs|pvfs*|ocfs2|gfs*|vxfs|panfs|beegfs)
    bad "$directory lies on shared storage ($type)" ;;
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
rm -f -- "$file"
[ "${works:-yes}" = yes ] || bad "file locks do not exclude each other in $directory"
echo good
)sh";

bool is_this_host(const sys::Identity& identity, const std::string& host) {
  const std::string short_name = identity.hostname.substr(0, identity.hostname.find('.'));
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == identity.hostname ||
         host == short_name ||
         std::find(identity.addresses.begin(), identity.addresses.end(), host) != identity.addresses.end();
}

NodeReport ask(sys::System& system, const std::string& host, const std::string& directory, const LocalChoice& choice,
               std::chrono::milliseconds deadline) {
  const std::string arguments = shell_join(
      {"sh", "-s", "--", directory, std::to_string(choice.min_free_bytes / 1024), std::to_string(k_least_free_inodes)});
  sys::Command command;
  command.argv = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "--", host, arguments};
  command.input = k_script;
  command.deadline = deadline;
  const auto done = system.run(command);
  using enum NodeReport::State;
  if (!done)
    return {host, unknown, done.error().message};
  if (done->timed_out)
    return {host, unknown, "no answer within " + format_duration(deadline.count() * 1000)};
  const std::string answer(trim(done->out));
  if (answer == "good")
    return {host, good, ""};
  if (answer.starts_with("bad "))
    return {host, bad, to_utf8(answer.substr(4))};
  const auto lines = split_lines(done->err);
  return {host, unknown,
          done->exit_code == k_ssh_failed && !lines.empty() ? to_utf8(lines.back())
                                                            : fmt::format("ssh ended with {}", done->exit_code)};
}

} // namespace

std::vector<NodeReport> check_nodes(sys::System& system, const std::vector<std::string>& hosts,
                                    const std::string& directory, const LocalChoice& choice,
                                    std::chrono::milliseconds deadline) {
  const sys::Identity identity = system.identity();
  std::vector<std::string> others;
  std::copy_if(hosts.begin(), hosts.end(), std::back_inserter(others),
               [&](const std::string& host) { return !is_this_host(identity, host) && !host.starts_with('-'); });
  std::vector<NodeReport> reports;
  for (std::size_t begin = 0; begin < others.size(); begin += k_most_at_once) {
    std::vector<std::future<NodeReport>> asked;
    for (std::size_t i = begin; i < std::min(others.size(), begin + k_most_at_once); ++i)
      asked.push_back(
          std::async(std::launch::async, [&, i] { return ask(system, others[i], directory, choice, deadline); }));
    for (auto& one : asked)
      reports.push_back(one.get());
  }
  return reports;
}

} // namespace sharefs::cachefix
