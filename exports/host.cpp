#include "exports/host.hpp"

#include "base/argv.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/configured_mounts.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

std::vector<std::string> exports_in_order(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) {
    return name.starts_with('.') || !name.ends_with(".exports") || name == ".exports";
  });
  std::ranges::sort(names,
                    [](const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; });
  return names;
}

namespace {

Diagnosis not_read(Severity severity, const std::string& path, std::string message, std::string hint) {
  return {severity, "SF126", path, std::move(message), std::move(hint), ""};
}

/// Returns a diagnosis if the path is not a file. In /etc/exports.d exportfs skips everything that is not a file, but
/// follows links; it opens /etc/exports whatever its type is.
std::optional<Diagnosis> check_is_file(const sys::Files& files, const std::string& path) {
  const auto entry = files.entry({.path = path});
  const auto target = entry.kind == sys::EntryKind::symlink ? files.entry({.path = path, .follow = true}) : entry;
  if (target.kind == sys::EntryKind::file || (entry.kind == sys::EntryKind::missing && path == k_exports_file))
    return std::nullopt;
  const bool gone = target.kind == sys::EntryKind::missing || target.error_number == ELOOP;
  if (target.kind == sys::EntryKind::unknown && !gone) // the read that follows reports why
    return std::nullopt;
  const bool followed = entry.kind == sys::EntryKind::symlink || path == k_exports_file;
  if (gone || !followed || target.kind == sys::EntryKind::directory || target.resolved == "/dev/null")
    return not_read(
        Severity::warning, path,
        fmt::format("{}: exportfs reads nothing here", gone ? "this link leads to no file" : "this is no file"),
        "remove it");
  return not_read(Severity::error, path, "this leads to a pipe, socket or device: exportfs may wait for it without end",
                  "remove it");
}

/// Reports SF159 if a user who is not root can change what exportfs reads there. In an image (`--root`) the owners are
/// those of the person who makes it.
void check_only_root_writes(const sys::Files& files, const std::string& path, Diagnoses& found) {
  constexpr std::uint32_t k_group_writes = 0020, k_others_write = 0002;
  const auto entry = files.entry({.path = path, .follow = true});
  if (!entry.exists())
    return;
  const auto without_acl = files.entry({.path = path, .follow = true, .acl = true});
  const bool foreign = files.is_live() && entry.uid != 0;
  const bool group = (entry.mode & k_group_writes) != 0 && entry.gid != 0;
  const bool by_acl = (entry.mode & ~without_acl.mode & k_group_writes) != 0; // the ACL's mask has more than its group
  if (foreign || group || by_acl || (entry.mode & k_others_write) != 0)
    found.push_back({Severity::error, "SF159", path,
                     fmt::format("others than root can change it (uid {}, gid {}, mode {:04o}), and so export any "
                                 "directory of this host to anybody",
                                 entry.uid, entry.gid, entry.mode),
                     fmt::format("look at what is in it, then `chown root: {0} && chmod go-w {0}`", shell_quote(path)),
                     ""});
}

} // namespace

Result<HostFiles> read_host_files(const sys::Files& files) {
  HostFiles host;
  const auto read = [&](const std::string& path) -> std::optional<std::string> {
    if (auto found = check_is_file(files, path)) {
      if (found->severity == Severity::error)
        host.waits_for = path;
      host.diagnoses.push_back(std::move(*found));
      return std::nullopt;
    }
    auto text = files.read_if_exists(path);
    if (!text)
      host.diagnoses.push_back(not_read(Severity::error, path, text.error().message, text.error().hint));
    if (!text || !*text)
      return std::nullopt;
    check_only_root_writes(files, path, host.diagnoses);
    host.files.push_back(parse(**text, path));
    return std::move(*text);
  };
  read(k_exports_file);
  auto names = files.list(k_exports_directory);
  if (!names && names.error().code == ErrorCode::timeout)
    return fail(names.error());
  if (!names && names.error().code != ErrorCode::not_found)
    host.diagnoses.push_back(not_read(Severity::error, k_exports_directory, names.error().message, names.error().hint));
  if (!names)
    return host;
  host.directory = true;
  check_only_root_writes(files, k_exports_directory, host.diagnoses);
  const auto ordered = exports_in_order(*names);
  for (const auto& name : *names)
    if (!name.starts_with('.') && std::find(ordered.begin(), ordered.end(), name) == ordered.end())
      host.diagnoses.push_back(
          not_read(Severity::warning, join_path(k_exports_directory, name),
                   "exportfs does not read this file: names in /etc/exports.d have to end in `.exports`",
                   fmt::format("rename it to `{}.exports`, or remove it", name)));
  for (const auto& name : ordered) {
    const auto path = join_path(k_exports_directory, name);
    auto text = read(path);
    if (path == k_own_file)
      host.own = std::move(text);
  }
  return host;
}

std::vector<std::string> own_directories(const HostFiles& host) {
  std::vector<std::string> directories;
  for (const auto& file : host.files)
    for (const auto& entry : file.read())
      if (file.name == k_own_file)
        directories.push_back(entry.directory);
  return directories;
}

Result<std::vector<Export>> read_etab(const sys::Files& files) {
  TRY_ASSIGN(const auto text, files.read_if_exists(k_etab));
  return parse_etab(text.value_or(""));
}

namespace {

using namespace std::chrono_literals;
constexpr auto k_names_budget = 10s; // for all names together
constexpr auto k_name_deadline = 3s;
constexpr std::size_t k_text_limit = 16U << 20U;

/// Finds the directories whose own file system is not mounted. The mounts of an image (`--root`) are not known.
void add_not_mounted(sys::System& system, HostFacts& facts) {
  if (!system.files().is_live())
    return;
  const auto configured = sys::read_configured_mounts(system);
  for (const auto& [directory, entry] : facts.directories)
    if (const auto* const one = sys::find_unmounted(configured, facts.mounts, entry.resolved))
      facts.not_mounted.insert_or_assign(directory, *one);
}

void add_directories(sys::System& system, const std::set<std::string>& directories, HostFacts& facts) {
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

/// True if name lookups of this host read /etc/hosts before anything else.
bool begins_with_files(sys::System& system) {
  const auto text = system.entry({.path = "/etc/nsswitch.conf", .follow = true, .read_bytes = 65536}).content;
  for (const auto& line : split_lines(text))
    if (const auto words = split_words(line); words.size() > 1 && words[0] == "hosts:")
      return words[1] == "files";
  return false;
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

Names facts_in_hosts(std::string_view hosts) {
  Names facts;
  for (const auto& line : split_lines(hosts)) {
    const auto words = split_words(std::string_view(line).substr(0, line.find('#')));
    for (std::size_t i = 1; i < words.size() && !canonical_address(words[0]).empty(); ++i) {
      auto& fact = facts[lower_case(words[i])];
      if (fact.addresses.empty())
        fact.canonical = words[1];
      if (std::ranges::count(fact.addresses, words[0]) == 0)
        fact.addresses.emplace_back(words[0]);
    }
  }
  return facts;
}

std::optional<NameFact> resolve_name(sys::System& system, const std::string& name, std::chrono::milliseconds deadline) {
  // On a host without an IPv6 address getent(1) leaves out IPv6 addresses; exportfs does not.
  const auto completed = system.run({.argv = {"getent", "--no-addrconfig", "ahosts", name}, .deadline = deadline});
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

Result<HostFacts> probe_facts(sys::System& system, const std::vector<ExportsFile>& files,
                              const std::vector<std::string>& more_directories, const Names& known, bool with_names) {
  HostFacts facts;
  TRY_ASSIGN(facts.mounts, system.mounts());
  std::set<std::string> directories(more_directories.begin(), more_directories.end());
  for (const auto& file : files)
    for (const auto& entry : file.exports) {
      directories.insert(entry.directory);
      directories.insert(normalize_path(join_path("/", entry.directory))); // where exportfs finds a relative path
    }
  add_directories(system, directories, facts);
  if (!with_names)
    return facts;
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
  // What /etc/hosts answers needs no time of the budget, which a name server that does not answer would use up.
  const auto by_hosts = begins_with_files(system) ? facts_in_hosts(facts.hosts) : Names();
  for (const auto& name : names)
    if (const auto fact = by_hosts.find(lower_case(name)); fact != by_hosts.end())
      facts.names.emplace(name, fact->second);
  const auto end = std::chrono::steady_clock::now() + k_names_budget;
  probe_names(system, names, end, facts);
  for (const auto& name : names)
    if (!facts.names.contains(name))
      facts.not_answered.insert(name);
  probe_names(system, canonical_names(facts.names), end, facts);
  probe_names(system, netgroups, end, facts);
  return facts;
}

} // namespace sharefs::exports
