#include "exports/diagnose.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/filesystem.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>

namespace sharefs::exports {

namespace {

bool is_mounted_read_only(const sys::MountEntry& mount) {
  return mount.options.substr(0, mount.options.find(',')) == "ro" ||
         mount.super_options.substr(0, mount.super_options.find(',')) == "ro";
}

Diagnosis diagnose_duplicate(const Export& entry, const Export& first) {
  const auto differs = differences(entry.settings, first.settings);
  return at(differs.empty() ? Severity::warning : Severity::error, "SF115", entry.origin,
            fmt::format("`{}` is exported to `{}` already at {}: exportfs ignores this entry{}", entry.directory,
                        entry.client, first.origin.text(),
                        differs.empty() ? "" : fmt::format(" ({})", join(differs, ", "))),
            "remove one of the two");
}

void diagnose_fsids(const ExpectedEtab& expected, std::map<std::string, Diagnoses>& by_file) {
  std::map<std::string, const Export*> owners;
  std::set<std::pair<std::string, std::string>> reported; // pairs of a directory and an fsid
  for (const auto& entry : expected.entries) {
    const auto found = entry.settings.values.find("fsid");
    if (found == entry.settings.values.end())
      continue;
    const auto& id = found->second;
    const auto* const owner = owners.emplace(id, &entry).first->second;
    if (owner->directory == entry.directory || !reported.emplace(entry.directory, id).second)
      continue;
    by_file[entry.origin.file].push_back(at(
        Severity::error, "SF117", entry.origin,
        fmt::format("`fsid={}` of `{}` is also that of `{}` at {}: clients get the files of one under the name of the "
                    "other",
                    id, entry.directory, owner->directory, owner->origin.text()),
        id == "0" ? "only one directory can be the root of NFSv4" : "give each directory a number of its own"));
  }
}

/// True if file handles of the file system can name nothing outside of the directory. A bind mount shows only a part of
/// a file system; subvolumes of btrfs and datasets of ZFS are file systems of their own.
bool is_whole(const sys::MountEntry& mount, std::string_view directory) {
  return mount.target == directory && (mount.root == "/" || mount.fs_type == "btrfs");
}

/// Checks one directory of the files, and its file system; `line` holds the clients of that directory.
void diagnose_directory(std::span<const Export> line, const HostFacts& facts, Diagnoses& diagnoses) {
  const auto& directory = line.front().directory;
  const auto& place = line.front().line;
  const auto report = [&](Severity severity, std::string code, std::string message, std::string hint = {}) {
    diagnoses.push_back(at(severity, std::move(code), place, std::move(message), std::move(hint)));
  };
  if (!directory.starts_with('/') && !directory.empty()) // it is empty after a NUL byte, which parse() has reported
    report(Severity::error, "SF118",
           fmt::format("`{}` is a relative path: which directory is exported depends on where exportfs is started",
                       directory),
           "write the path from `/` on");
  const auto found = facts.directories.find(directory);
  if (found == facts.directories.end())
    return;
  const auto& entry = found->second;
  if (const auto absent = facts.not_mounted.find(directory); absent != facts.not_mounted.end()) {
    report(Severity::error, "SF148",
           fmt::format("the file system of `{}` is not mounted ({}): clients see the bare directory below it, and "
                       "write to another disk",
                       directory, absent->second.origin),
           sys::hint_to_mount(absent->second));
    return; // what is said of the bare directory is not true of the one that is meant
  }
  if (const auto other = facts.replaceable.find(directory); other != facts.replaceable.end())
    report(
        Severity::warning, "SF138",
        fmt::format("`{}` may lead to another directory when exportfs next reads this: {}", directory, other->second),
        "export a directory whose whole path only root can change, as below /srv or /mnt");
  if (entry.kind == sys::EntryKind::missing)
    report(Severity::warning, "SF123",
           fmt::format("`{}` does not exist: exportfs exports it all the same, and mounting it fails", directory),
           "make it, or correct the path");
  if (entry.error_number == ELOOP || entry.error_number == ENAMETOOLONG)
    report(Severity::error, "SF123",
           fmt::format("`{}` {}: exportfs exports it all the same, and mounting it fails", directory,
                       entry.error_number == ELOOP ? "leads in a circle of links" : "is longer than a name may be"),
           "correct the path");
  else if (entry.error_number != 0 && entry.kind == sys::EntryKind::unknown && !entry.hung())
    report(Severity::warning, "SF123",
           fmt::format("`{}` cannot be read ({}): where root cannot read it either, mounting it fails", directory,
                       errno_text(entry.error_number)),
           "see `namei -l` for who may; a FUSE file system of a user needs `allow_root`");
  if (entry.exists() && entry.kind != sys::EntryKind::directory)
    report(Severity::error, "SF123", fmt::format("`{}` is no directory", directory), "correct the path");
  const auto* const mount = facts.mounts.at(entry.mount);
  const auto file_system = file_system_of(entry, facts.mounts);
  if (file_system.exportable == Exportable::no) {
    report(Severity::error, "SF125",
           fmt::format("`{}` lies on {}, which cannot be exported: {}", directory, entry.fs_type, file_system.why));
    return;
  }
  if (entry.kind != sys::EntryKind::directory)
    return;
  const bool checked =
      std::ranges::all_of(line, [](const Export& client) { return !client.settings.has(k_no_subtree_check); });
  if (mount != nullptr && !checked && !is_whole(*mount, entry.resolved))
    report(Severity::warning, "SF136",
           fmt::format("`{}` is a part of the file system on {}: a client that forges file handles reaches all of it",
                       directory, mount->target),
           "give the export a file system of its own, or export only to hosts whose root you trust");
  if (directory.starts_with('/') && normalize_path(directory) != entry.resolved)
    report(Severity::warning, "SF142",
           fmt::format(
               "`{0}` leads to `{1}` by a link: exportfs exports `{1}`, and clients of NFS version 4 find no `{0}`",
               directory, entry.resolved),
           fmt::format("write `{}`, here and on the clients", entry.resolved));
  if (file_system.exportable == Exportable::yes)
    return;
  const bool needed = file_system.exportable == Exportable::needs_fsid;
  for (const auto& client : line) {
    if (client.settings.values.contains("fsid"))
      continue;
    diagnoses.push_back(
        at(needed ? Severity::error : Severity::warning, "SF124", client.origin,
           fmt::format("`{}` lies on {} and has no `fsid=`: {}, since {}", directory, entry.fs_type,
                       needed ? "clients cannot mount it"
                              : "clients lose it whenever it is mounted anew, and older kernels do not export it",
                       file_system.why),
           "add `fsid=` with a number that no other export has"));
    return; // one report for all clients of the directory
  }
}

Diagnoses diagnose_netgroup(const Export& entry, const HostFacts& facts) {
  if (kind_of(entry.client) != ClientKind::netgroup || !facts.names.contains(entry.client))
    return {};
  return {at(Severity::warning, "SF122", entry.origin,
             fmt::format("this host knows no netgroup `{}`: the entry is exported, and no client matches it",
                         entry.client.substr(1)),
             fmt::format("see `netgroup:` in /etc/nsswitch.conf, and `getent netgroup {}`; or name the clients",
                         shell_quote(entry.client.substr(1))))};
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
  for (std::size_t number = 0; number < files.size(); ++number) {
    const auto& file = files[number];
    std::ranges::copy(file.diagnoses, std::back_inserter(by_file[file.name]));
    auto outcome = expected.outcomes[number].begin();
    for (std::span<const Export> rest = file.exports; !rest.empty(); rest = rest.subspan(first_line(rest).size())) {
      diagnose_directory(first_line(rest), facts, by_file[rest.front().line.file]);
      for (const auto& entry : first_line(rest)) {
        auto& found = by_file[entry.origin.file];
        std::ranges::copy(diagnose_client(entry), std::back_inserter(found));
        // What exportfs ignores, drops or does not read gives nobody a right.
        for (const auto& part : {diagnose_rights(entry), diagnose_netgroup(entry, facts)})
          if (outcome->exported())
            std::ranges::copy(part, std::back_inserter(found));
        if (outcome->duplicate)
          found.push_back(diagnose_duplicate(entry, expected.entries[*outcome->position]));
        else if (outcome->position)
          std::ranges::move(diagnose_mistaken(entry, expected.entries[*outcome->position], facts),
                            std::back_inserter(found));
        ++outcome;
      }
    }
  }
  diagnose_fsids(expected, by_file);
  diagnose_reach(expected, facts, by_file);
  diagnose_answer(files, expected, by_file);
  Diagnoses all;
  const auto take = [&](Diagnoses found) {
    // All are of one file, so their subjects differ only in the line and column.
    std::ranges::stable_sort(found, [](const Diagnosis& a, const Diagnosis& b) {
      return ::strverscmp(a.subject.c_str(), b.subject.c_str()) < 0;
    });
    all.insert(all.end(), found.begin(), found.end());
  };
  for (const auto& file : files)
    take(std::exchange(by_file[file.name], {}));
  for (auto& [name, found] : by_file)
    take(std::move(found));
  if (!facts.not_answered.empty())
    all.push_back(
        {Severity::warning, "SF122", "exportfs",
         fmt::format("no answer came whether `{}`{} resolves: it is shown as if it did", *facts.not_answered.begin(),
                     facts.not_answered.size() == 1 ? ""
                                                    : " and " + count_of(facts.not_answered.size() - 1, "other name")),
         "see whether the name server answers: `getent hosts NAME`", ""});
  if (!expected.not_asked.empty())
    all.push_back({expected.cure.empty() ? Severity::info : Severity::error, "SF158", "exportfs",
                   fmt::format("only what is certain from the text was checked: {}", expected.not_asked), expected.cure,
                   ""});
  return all;
}

Diagnoses diagnose_entry(const Export& entry, const std::string& refused) {
  if (const auto bad = find_bad_option(entry.options, refused))
    return {at(Severity::error, bad->code, entry.origin, bad->message, bad->hint)};
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
