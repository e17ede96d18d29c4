#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/host.hpp"
#include "plan/look.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

namespace {

using namespace std::chrono_literals;
constexpr auto k_names_budget = 10s; // for all names together
constexpr auto k_name_deadline = 3s;

Result<void> probe_directories(sys::System& system, const std::set<std::string>& directories, HostFacts& facts) {
  auto mounts = system.mounts();
  if (!mounts)
    return fail(mounts.error());
  facts.mounts = std::move(*mounts);
  sys::EntryRequest request;
  for (const auto& directory : directories)
    if (directory.starts_with('/'))
      request.queries.push_back({.path = directory, .follow = true, .links = sys::Links::trusted, .guarded = true});
  sys::EntryRequest again; // what a user could exchange, as exportfs itself would find it
  for (auto& entry : system.entries(request)) {
    if (entry.error_number == EPERM) {
      facts.exchangeable.emplace(entry.path, entry.detail);
      again.queries.push_back({.path = entry.path, .follow = true});
    }
    facts.directories.insert_or_assign(entry.path, std::move(entry));
  }
  for (auto& entry : system.entries(again))
    facts.directories.insert_or_assign(entry.path, std::move(entry));
  return {};
}

/// As mountd sees it (support/misc/mountpoint.c): the directory above lies on another device, or is the same one.
void probe_mount_points(sys::System& system, const std::set<std::string>& paths, HostFacts& facts) {
  sys::EntryRequest request;
  for (const auto& path : paths)
    if (path.starts_with('/')) {
      request.queries.push_back({.path = path});
      request.queries.push_back({.path = path, .follow = true});
    }
  const auto entries = system.entries(request);
  sys::EntryRequest above;
  for (std::size_t i = 0; i < entries.size(); i += 2)
    above.queries.push_back({.path = parent_path(entries[i + 1].resolved), .follow = true});
  const auto parents = system.entries(above);
  for (std::size_t i = 0; i < parents.size(); ++i) {
    const auto& entry = entries[2 * i];
    const auto& parent = parents[i];
    if (entry.kind != sys::EntryKind::unknown && parent.kind != sys::EntryKind::unknown)
      facts.mount_points[entry.path] =
          entry.exists() && parent.exists() && (entry.device != parent.device || entry.inode == parent.inode);
  }
}

Result<sys::Completed> getent(sys::System& system, const std::string& database, const std::string& key,
                              std::chrono::milliseconds deadline) {
  sys::Command command;
  command.argv = {"getent", database, key};
  command.deadline = deadline;
  return system.run(command);
}

void probe_names(sys::System& system, const std::set<std::string>& names, std::chrono::steady_clock::time_point end,
                 HostFacts& facts) {
  for (const auto& name : names) {
    if (facts.names.contains(name))
      continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left <= 0ms)
      return;
    if (auto fact = resolve_name(system, name, std::min<std::chrono::milliseconds>(left, k_name_deadline)))
      facts.names.emplace(name, std::move(*fact));
  }
}

/// The names that etab will have: mountd looks them up again.
std::set<std::string> canonical_names(const Names& names) {
  std::set<std::string> canonical;
  for (const auto& [name, fact] : names)
    if (!fact.canonical.empty() && canonical_address(fact.canonical).empty())
      canonical.insert(fact.canonical);
  return canonical;
}

/// Does the installed exportfs know these options? Its binary holds their names; a version alone says little, because
/// distributions take new options into old versions.
void probe_options(sys::System& system, const std::set<std::string>& options, HostFacts& facts) {
  constexpr std::size_t k_program_limit = 8U << 20U;
  const auto content =
      system.entry({.path = "/usr/sbin/exportfs", .follow = true, .read_bytes = k_program_limit}).content;
  if (content.empty())
    return; // not installed, or not here: not judged
  for (const auto& option : options)
    if (content.find(option) == std::string::npos)
      facts.missing_options.insert(option);
  if (facts.missing_options.empty())
    return;
  sys::Command command;
  command.argv = {"rpc.mountd", "--version"};
  command.deadline = 2s;
  if (const auto completed = system.run(command); completed && !completed->timed_out) {
    const auto words = split_words(trim(completed->out.empty() ? completed->err : completed->out));
    if (!words.empty() && words.back().find_first_not_of("0123456789.") == std::string::npos)
      facts.nfs_utils_version = words.back();
  }
}

} // namespace

std::optional<NameFact> resolve_name(sys::System& system, const std::string& name, std::chrono::milliseconds deadline) {
  constexpr int k_not_found = 2; // getent(1)
  const auto completed = getent(system, "ahosts", name, deadline);
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
  const auto completed = getent(system, "group", name, 5s);
  if (!completed)
    return fail(completed.error());
  if (completed->timed_out)
    return fail(ErrorCode::timeout, fmt::format("looking up the group `{}` gave no answer within 5 s", name));
  const auto fields = split(trim(completed->out), ':'); // name:password:gid:members
  std::uint32_t gid = 0;
  if (completed->exit_code == 0 && fields.size() >= 3 &&
      std::from_chars(fields[2].data(), fields[2].data() + fields[2].size(), gid).ec == std::errc())
    return gid;
  return fail(ErrorCode::not_found, fmt::format("there is no group `{}` on this host", name),
              fmt::format("make it with `groupadd {}`, with the same number on all hosts", name));
}

Result<HostFacts> probe_facts(sys::System& system, const std::vector<ExportsFile>& files,
                              const std::vector<std::string>& more_directories, const Names& known) {
  std::set<std::string> directories(more_directories.begin(), more_directories.end());
  std::set<std::string> names;
  std::set<std::string> options;
  std::set<std::string> mount_points;
  for (const auto& file : files)
    for (const auto* list : {&file.exports, &file.lost})
      for (const auto& entry : *list) {
        directories.insert(entry.directory);
        if (const auto option = entry.settings.values.find("mountpoint"); option != entry.settings.values.end())
          mount_points.insert(option->second.empty() ? entry.directory : option->second);
        const bool name = kind_of(entry.client) == ClientKind::host &&
                          (canonical_address(entry.client).empty() || has_scope(entry.client));
        if (name && entry.client.find(',') == std::string::npos)
          names.insert(entry.client);
        for (const auto* words : {&entry.defaults, &entry.options})
          for (const auto& option : *words)
            if (!option_since(option).empty())
              options.insert(option.substr(0, option.find('=')));
      }
  HostFacts facts;
  facts.names = known;
  if (auto probed = probe_directories(system, directories, facts); !probed)
    return fail(probed.error());
  if (!mount_points.empty())
    probe_mount_points(system, mount_points, facts);
  const auto end = std::chrono::steady_clock::now() + k_names_budget;
  probe_names(system, names, end, facts);
  probe_names(system, canonical_names(facts.names), end, facts);
  if (!options.empty())
    probe_options(system, options, facts);
  return facts;
}

} // namespace sharefs::exports
