#include "exports/diagnose.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/filesystem.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::exports {

namespace {

bool is_mounted_read_only(const sys::MountEntry& mount) {
  return mount.options.substr(0, mount.options.find(',')) == "ro" ||
         mount.super_options.substr(0, mount.super_options.find(',')) == "ro";
}

void diagnose_netgroup(const Export& entry, const HostFacts& facts, Diagnoses& found) {
  if (kind_of(entry.client) == ClientKind::netgroup && facts.names.contains(entry.client))
    found.push_back(at(Severity::warning, "SF122", entry.origin,
                       fmt::format("this host knows no netgroup `{}`: the entry is exported, and no client matches it",
                                   entry.client.substr(1)),
                       fmt::format("see `netgroup:` in /etc/nsswitch.conf, and `getent netgroup {}`; or name the "
                                   "clients",
                                   shell_quote(entry.client.substr(1)))));
}

/// Returns, by exported directory, the mount points below it that are other file systems to its clients and have no
/// export of their own. Only the outermost are returned.
std::map<std::string, std::vector<std::string>> find_uncrossed(const std::set<std::string>& exported,
                                                               const sys::MountTable& mounts) {
  std::map<std::string, std::vector<std::string>> found;
  std::set<std::string> targets;
  for (const auto& mount : mounts.entries())
    if (mounts.at(mount.target) == &mount &&
        file_system_fact(mount.fs_type, mount.super_options).exportable != Exportable::no)
      targets.insert(mount.target);
  for (const auto& target : targets) {
    if (exported.contains(target) || target == "/")
      continue;
    auto above = parent_path(target);
    while (above != "/" && !exported.contains(above) && !targets.contains(above))
      above = parent_path(above);
    if (above != "/" && exported.contains(above)) // below `/` there are the system's own, such as /run
      found[above].push_back(target);
  }
  return found;
}

/// Returns SF149 for a directory that is exported to `clients` without `crossmnt`.
Diagnosis uncrossed(const std::string& directory, const std::vector<std::string>& clients,
                    const std::vector<std::string>& hidden) {
  const auto more = hidden.size() - 1;
  return {Severity::warning,
          "SF149",
          directory,
          fmt::format("{}{} {} mounted on this server below the export: {} see the directory that lies under the "
                      "mount, and write there",
                      hidden.front(), more == 0 ? "" : fmt::format(" and {} more", more), more == 0 ? "is" : "are",
                      join(clients, ", ")),
          fmt::format("add `crossmnt` to the options of {}, or export {}, too", directory, hidden.front()),
          ""};
}

} // namespace

Diagnoses diagnose(const std::vector<ExportsFile>& files, const ExpectedEtab& expected, const HostFacts& facts) {
  std::map<std::string, Diagnoses> by_file; // one is sharefs.yaml: its entries stand in the own file
  for (const auto& file : files) {
    auto& syntax = by_file[file.name];
    syntax.insert(syntax.end(), file.diagnoses.begin(), file.diagnoses.end());
    for (std::span<const Export> rest = file.exports; !rest.empty(); rest = rest.subspan(first_line(rest).size())) {
      auto& found = by_file[rest.front().line.file];
      diagnose_directory(first_line(rest), facts, found);
      for (const auto& entry : first_line(rest)) {
        diagnose_client(entry, found);
        diagnose_rights(entry, found);
        diagnose_netgroup(entry, facts, found);
      }
    }
  }
  diagnose_together(expected, by_file);
  diagnose_reach(files, expected, facts, by_file);
  diagnose_answer(files, expected, by_file);
  Diagnoses all;
  const auto take = [&](Diagnoses found) {
    // All are of one file, so their subjects differ only in the line and column.
    std::stable_sort(found.begin(), found.end(), [](const Diagnosis& a, const Diagnosis& b) {
      return ::strverscmp(a.subject.c_str(), b.subject.c_str()) < 0;
    });
    all.insert(all.end(), found.begin(), found.end());
  };
  for (const auto& file : files)
    take(std::exchange(by_file[file.name], {}));
  for (auto& [name, found] : by_file)
    take(std::move(found));
  if (!expected.not_asked.empty())
    all.push_back({expected.cure.empty() ? Severity::info : Severity::error, "SF158", "exportfs",
                   fmt::format("only what is certain from the text was checked: {}", expected.not_asked), expected.cure,
                   ""});
  return all;
}

Diagnoses diagnose_entry(const Export& entry) {
  if (const auto bad = find_bad_option(entry.defaults, entry.options))
    return {at(Severity::error, bad->unknown ? "SF107" : "SF108", entry.origin, bad->message, bad->hint)};
  const auto names_flavours = [](const std::string& option) { return option.starts_with("sec="); };
  if (!entry.options.empty() && std::ranges::any_of(entry.defaults, names_flavours))
    return {at(Severity::error, "SF150", entry.origin,
               fmt::format("the options of `{}` would not reach the flavours of `sec=` in the options of all clients",
                           entry.client),
               "write `sec=` with the options of each client")};
  if (auto why = unwritable(entry); !why.empty())
    return {at(Severity::error, "SF129", entry.line, std::move(why))};
  return {};
}

Diagnoses diagnose_in_force(const std::vector<Export>& etab, const sys::MountTable& mounts) {
  std::map<std::string, std::vector<std::string>> early, writable, without_crossing; // clients by directory
  std::set<std::string> exported;
  for (const auto& entry : etab) {
    exported.insert(entry.directory);
    if (!entry.settings.has(k_cross_mounts))
      without_crossing[entry.directory].push_back(entry.client);
    if (entry.settings.has(k_async))
      early[entry.directory].push_back(entry.client);
    if (entry.settings.writable())
      writable[entry.directory].push_back(entry.client);
  }
  Diagnoses found;
  for (const auto& [directory, clients] : writable)
    if (const auto* mount = mounts.owner_of(directory); mount != nullptr && is_mounted_read_only(*mount))
      found.push_back({Severity::error, "SF147", directory,
                       fmt::format("exported with `rw` to {}, and its file system (mounted at {}) is read-only",
                                   join(clients, ", "), mount->target),
                       "`dmesg` has the disk's errors, if there were any: check it, then "
                       "`mount -o remount,rw`; or export it with `ro`",
                       ""});
  for (const auto& [directory, hidden] : find_uncrossed(exported, mounts))
    if (const auto clients = without_crossing.find(directory); clients != without_crossing.end())
      found.push_back(uncrossed(directory, clients->second, hidden));
  for (const auto& [directory, clients] : early)
    found.push_back({Severity::warning, "SF145", directory,
                     fmt::format("exported with `async` to {}: what clients were told is safe is lost if this host "
                                 "crashes",
                                 join(clients, ", ")),
                     "`sync` in the options of the export", ""});
  return found;
}

} // namespace sharefs::exports
