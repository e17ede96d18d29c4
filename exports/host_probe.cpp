#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "exports/host.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

namespace {

using namespace std::chrono_literals;
constexpr auto k_names_budget = 10s; // for all names together
constexpr auto k_name_deadline = 3s;
constexpr std::size_t k_text_limit = 16U << 20U;

/// Finds the directories whose own file system is not mounted. The mounts of an image (`--root`) are not known.
void add_not_mounted(sys::System& system, HostFacts& facts) {
  if (!system.files().is_live())
    return;
  const auto text = system.entry({.path = sys::k_fstab, .follow = true, .read_bytes = k_text_limit}).content;
  const auto lines = sys::parse_fstab(text);
  for (const auto& [directory, entry] : facts.directories)
    if (const auto* const line = sys::find_unmounted(lines, facts.mounts, entry.resolved))
      facts.not_mounted.insert_or_assign(directory, *line);
}

Result<void> add_directories(sys::System& system, const std::set<std::string>& directories, HostFacts& facts) {
  TRY_ASSIGN(facts.mounts, system.mounts());
  sys::EntryRequest request;
  for (const auto& directory : directories)
    if (directory.starts_with('/'))
      request.queries.push_back({.path = directory, .follow = true, .links = sys::Links::trusted, .guarded = true});
  sys::EntryRequest again; // paths that a user could replace, read as exportfs would, without the guard
  for (auto& entry : system.entries(request)) {
    if (entry.error_number == EPERM) {
      facts.replaceable.emplace(entry.path, entry.detail);
      again.queries.push_back({.path = entry.path, .follow = true});
    }
    facts.directories.insert_or_assign(entry.path, std::move(entry));
  }
  for (auto& entry : system.entries(again))
    facts.directories.insert_or_assign(entry.path, std::move(entry));
  add_not_mounted(system, facts);
  for (const auto& [path, entry] : facts.directories)
    if (facts.waits_for.empty() && entry.hung())
      facts.waits_for = path;
  return {};
}

/// On a host without an IPv6 address getent(1) leaves out IPv6 addresses; exportfs does not.
Result<sys::Completed> ask_getent(sys::System& system, const std::string& name, std::chrono::milliseconds deadline) {
  constexpr int k_usage = 64; // exit code of an older getent that does not know the option (argp_parse(3))
  auto all = system.run({.argv = {"getent", "--no-addrconfig", "ahosts", name}, .deadline = deadline});
  if (all && all->exit_code == k_usage)
    return system.run({.argv = {"getent", "ahosts", name}, .deadline = deadline});
  return all;
}

constexpr int k_not_found = 2; // exit code, getent(1)

/// Returns a fact without addresses for a netgroup that this host does not know. A known one gets no fact, because its
/// members do not matter here.
std::optional<NameFact> find_unknown_netgroup(sys::System& system, const std::string& client,
                                              std::chrono::milliseconds deadline) {
  const auto completed = system.run({.argv = {"getent", "netgroup", client.substr(1)}, .deadline = deadline});
  const bool is_unknown = completed && !completed->timed_out && completed->exit_code == k_not_found;
  return is_unknown ? std::optional(NameFact{}) : std::nullopt;
}

/// Asks for each name, and each netgroup (`@NAME`), of which no fact is known, until `end`, so that a directory service
/// that hangs delays no more.
void probe_names(sys::System& system, const std::set<std::string>& names, std::chrono::steady_clock::time_point end,
                 HostFacts& facts) {
  for (const auto& name : names) {
    if (facts.names.contains(name))
      continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left <= 0ms)
      return;
    const auto deadline = std::min<std::chrono::milliseconds>(left, k_name_deadline);
    auto fact =
        name.starts_with('@') ? find_unknown_netgroup(system, name, deadline) : resolve_name(system, name, deadline);
    if (fact)
      facts.names.emplace(name, std::move(*fact));
  }
}

/// Returns the names that etab will have, which mountd resolves again.
std::set<std::string> canonical_names(const Names& names) {
  std::set<std::string> canonical;
  for (const auto& [name, fact] : names)
    if (!fact.canonical.empty() && canonical_address(fact.canonical).empty())
      canonical.insert(fact.canonical);
  return canonical;
}

} // namespace

std::optional<NameFact> resolve_name(sys::System& system, const std::string& name, std::chrono::milliseconds deadline) {
  const auto completed = ask_getent(system, name, deadline);
  if (!completed || completed->timed_out || (completed->exit_code != 0 && completed->exit_code != k_not_found))
    return std::nullopt;
  NameFact fact;
  for (const auto& line : split_lines(completed->out)) {
    const auto words = split_words(line); // ADDRESS STREAM [CANONICAL]
    if (words.empty())
      continue;
    if (std::ranges::count(fact.addresses, words[0]) == 0)
      fact.addresses.push_back(words[0]);
    if (words.size() > 2 && fact.canonical.empty())
      fact.canonical = words[2];
  }
  return fact;
}

Result<std::uint32_t> resolve_group(sys::System& system, const std::string& name) {
  TRY_ASSIGN(const auto completed, system.run({.argv = {"getent", "group", name}, .deadline = 5s}));
  if (completed.timed_out)
    return fail(ErrorCode::timeout, fmt::format("looking up the group `{}` gave no answer within 5 s", name));
  const auto fields = split(trim(completed.out), ':'); // name:password:gid:members
  if (completed.exit_code == 0 && fields.size() >= 3)
    if (const auto gid = parse_number<std::uint32_t>(fields[2]))
      return *gid;
  return fail(ErrorCode::not_found, fmt::format("there is no group `{}` on this host", name),
              fmt::format("make it with `groupadd {}`, with the same number on all hosts", name));
}

Result<HostFacts> probe_directories(sys::System& system, const std::vector<ExportsFile>& files,
                                    const std::vector<std::string>& more) {
  std::set<std::string> directories(more.begin(), more.end());
  for (const auto& file : files)
    for (const auto& entry : file.exports)
      directories.insert(entry.directory);
  HostFacts facts;
  TRY(add_directories(system, directories, facts));
  return facts;
}

Result<HostFacts> probe_facts(sys::System& system, const std::vector<ExportsFile>& files,
                              const std::vector<std::string>& more_directories, const Names& known) {
  TRY_ASSIGN(auto facts, probe_directories(system, files, more_directories));
  facts.names = known;
  facts.hosts = system.entry({.path = "/etc/hosts", .follow = true, .read_bytes = k_text_limit}).content;
  std::set<std::string> names, netgroups;
  for (const auto& file : files)
    for (const auto& entry : file.exports)
      if (kind_of(entry.client) == ClientKind::netgroup)
        netgroups.insert(entry.client);
      else if (kind_of(entry.client) == ClientKind::host && entry.client.find(',') == std::string::npos &&
               (canonical_address(entry.client).empty() || has_scope(entry.client)))
        names.insert(entry.client);
  const auto end = std::chrono::steady_clock::now() + k_names_budget;
  probe_names(system, names, end, facts);
  probe_names(system, canonical_names(facts.names), end, facts);
  probe_names(system, netgroups, end, facts);
  return facts;
}

} // namespace sharefs::exports
