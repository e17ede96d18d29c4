#include "cli/commands/init/facts.hpp"

#include "base/path.hpp"
#include "base/source.hpp"
#include "base/text.hpp"
#include "exports/host.hpp"
#include "mounts/compare.hpp"
#include "mounts/probe.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace sharefs::cli {

namespace {

constexpr std::chrono::milliseconds k_server_deadline{3000};
constexpr std::array<std::string_view, 5> k_of_containers{"/var/lib/docker", "/var/lib/containers", "/var/lib/kubelet",
                                                          "/var/snap", "/run"};

/// IPv4 first: it is what people write into exports.
std::vector<std::string> ordered(std::vector<std::string> addresses) {
  std::ranges::stable_partition(addresses,
                                [](const std::string& address) { return address.find(':') == std::string::npos; });
  return addresses;
}

/// What only --import asks for. Servers all at once, of hostfiles those at the usual places and on the shares.
void import_facts(sys::System& system, bool live, InitFacts& facts) {
  facts.exact = true;
  auto boot = mounts::boot_facts(system);
  for (auto& entry : boot.entries)
    if (!entry.ours)
      (entry.is_nfs() ? facts.boot : facts.not_taken).push_back(std::move(entry));
  std::ranges::move(boot.others, std::back_inserter(facts.not_taken));
  if (!live)
    return;
  mounts::ProbeRequest request;
  request.server_deadline = k_server_deadline;
  const auto ask = [&](const std::string& source, const std::string& target) {
    const auto remote = parse_source(source);
    if (!remote.server.empty())
      request.wanted.push_back({.server = remote.server, .path = remote.path, .target = target});
  };
  for (const auto& mount : facts.mounts)
    ask(mount.source, mount.target);
  for (const auto& entry : facts.boot)
    ask(entry.source, entry.target);
  if (auto seen = mounts::probe(system, request))
    facts.servers = std::move(seen->servers);

  sys::EntryRequest hostfiles;
  for (const std::string directory : {"/job", "/etc/sharefs", "/etc", "/root"}) // the first is DeepSpeed's default
    hostfiles.queries.push_back({.path = join_path(directory, "hostfile")});
  for (const auto& mount : facts.mounts)
    hostfiles.queries.push_back({.path = join_path(mount.target, "hostfile")});
  const auto answers = system.entries(hostfiles);
  const auto found = std::ranges::find(answers, sys::EntryKind::file, &sys::Entry::kind);
  if (found == answers.end())
    return;
  facts.hostfile = found->path;
  const auto safe = system.entry({.path = found->path, .links = sys::Links::trusted, .guarded = true});
  const auto self = system.identity().uid;
  facts.others_write_hostfile =
      safe.kind != sys::EntryKind::file || (safe.uid != 0 && safe.uid != self) || (safe.mode & 0022U) != 0;
}

} // namespace

std::vector<sys::MountEntry> own_nfs_mounts(const sys::MountTable& table) {
  std::vector<const sys::MountEntry*> all;
  for (const auto& mount : table.entries())
    if (sys::is_nfs(mount) && !mount.deleted && table.at(mount.target) == &mount)
      all.push_back(&mount);
  std::vector<sys::MountEntry> own;
  for (const auto* mount : all) {
    const auto holds = [&](std::string_view directory) { return is_under(mount->target, directory); };
    const auto crossed = [&](const sys::MountEntry* outer) { return mounts::is_submount(*outer, *mount); };
    if (std::ranges::none_of(k_of_containers, holds) && std::ranges::none_of(all, crossed))
      own.push_back(*mount);
  }
  return own;
}

Result<InitFacts> find_init_facts(sys::System& system, bool live, bool import) {
  InitFacts facts;
  auto host = exports::read_host_files(system.files());
  if (!host)
    return fail(host.error());
  facts.exports = std::move(host->files);
  const auto self = system.identity();
  if (!live) {
    const auto name = system.files().read_if_exists("/etc/hostname");
    facts.hostname = name && *name ? std::string(trim(**name)) : "";
    if (import)
      import_facts(system, live, facts);
    return facts;
  }
  facts.hostname = self.hostname;
  facts.addresses = ordered(self.addresses);
  auto table = system.mounts();
  if (!table)
    return fail(table.error());
  facts.mounts = own_nfs_mounts(*table);
  if (import)
    import_facts(system, live, facts);
  return facts;
}

} // namespace sharefs::cli
