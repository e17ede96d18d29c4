#include "cli/commands/init/facts.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "exports/export_flow.hpp"
#include "exports/host.hpp"
#include "mounts/compare.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace sharefs::cli {

namespace {

constexpr std::array<std::string_view, 5> k_of_containers{"/var/lib/docker", "/var/lib/containers", "/var/lib/kubelet",
                                                          "/var/snap", "/run"};

/// Puts IPv4 first, because people write IPv4 addresses into exports.
std::vector<std::string> ordered(std::vector<std::string> addresses) {
  std::ranges::stable_partition(addresses,
                                [](const std::string& address) { return address.find(':') == std::string::npos; });
  return addresses;
}

/// Returns the first hostfile, in the usual places and on the shares, that only root can write or replace; "" if there
/// is none.
std::string find_hostfile(sys::System& system, const std::vector<sys::MountEntry>& mounts) {
  sys::EntryRequest request;
  const auto ask = [&request](const std::string& directory) {
    request.queries.push_back(
        {.path = join_path(directory, "hostfile"), .links = sys::Links::trusted, .guarded = true});
  };
  for (const auto* directory : {"/job", "/etc/sharefs", "/etc", "/root"}) // the first one is DeepSpeed's default
    ask(directory);
  for (const auto& mount : mounts)
    ask(mount.target);
  const auto self = system.identity().uid;
  const auto answers = system.entries(request);
  const auto found = std::ranges::find_if(answers, [self](const sys::Entry& entry) {
    return entry.kind == sys::EntryKind::file && (entry.uid == 0 || entry.uid == self) && (entry.mode & 0022U) == 0;
  });
  return found == answers.end() ? "" : found->path;
}

} // namespace

bool is_expanded(const std::string& source) {
  return source.find_first_of("$`") != std::string::npos;
}

std::vector<sys::MountEntry> own_nfs_mounts(const sys::MountTable& table) {
  std::vector<const sys::MountEntry*> all;
  for (const auto& mount : table.entries())
    if (sys::is_nfs(mount) && table.at(mount.target) == &mount)
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

Result<InitFacts> find_init_facts(sys::System& system, bool live) {
  InitFacts facts;
  // Only exportfs knows how far it reads in a file; what it does not read must not be exported by sharefs.yaml.
  TRY_ASSIGN(facts.exports, live
                                ? exports::check(system, {}, {}).map([](auto&& checked) { return checked.host.files; })
                                : exports::read_host_files(system.files()).map([](auto&& host) { return host.files; }));
  auto boot = mounts::read_boot_facts(system);
  for (auto& entry : boot.entries)
    if (!entry.ours)
      (entry.is_nfs() && !is_expanded(entry.source) ? facts.boot : facts.not_taken).push_back(std::move(entry));
  std::ranges::move(boot.others, std::back_inserter(facts.not_taken));
  if (!live) {
    const auto name = system.files().read_if_exists("/etc/hostname");
    facts.hostname = name && *name ? std::string(trim(**name)) : "";
    return facts;
  }
  const auto self = system.identity();
  facts.hostname = self.hostname;
  facts.addresses = ordered(self.addresses);
  TRY_ASSIGN(auto table, system.mounts());
  facts.mounts = own_nfs_mounts(table);
  facts.hostfile = find_hostfile(system, facts.mounts);
  return facts;
}

} // namespace sharefs::cli
