// Checks entries against each other, and against the host.
#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/diagnose.hpp"
#include "exports/filesystem.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

namespace {

using ByFile = std::map<std::string, Diagnoses>;

void diagnose_duplicates(const ExpectedEtab& expected, ByFile& by_file) {
  for (const auto& [file, entry, winner] : expected.dropped) {
    if (!winner)
      continue;
    const auto& first = expected.entries[*winner];
    const auto differs = differences(entry.settings, first.settings);
    by_file[entry.origin.file].push_back(
        at(differs.empty() ? Severity::warning : Severity::error, "SF115", entry.origin,
           fmt::format("`{}` is exported to `{}` already at {}: exportfs ignores this entry{}", entry.directory,
                       entry.client, first.origin.text(),
                       differs.empty() ? "" : fmt::format(" ({})", join(differs, ", "))),
           "remove one of the two"));
  }
}

void diagnose_fsids(const ExpectedEtab& expected, ByFile& by_file) {
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

} // namespace

void diagnose_together(const ExpectedEtab& expected, ByFile& by_file) {
  diagnose_duplicates(expected, by_file);
  diagnose_fsids(expected, by_file);
}

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
           fmt::format("the file system of `{}` is not mounted ({}:{}): clients see the bare directory below it, and "
                       "write to another disk",
                       directory, sys::k_fstab, absent->second.number),
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
           fmt::format("`{}` does not exist: exportfs exports it all the same, and mounting it fails", directory));
  if (entry.error_number == ELOOP || entry.error_number == ENAMETOOLONG)
    report(Severity::error, "SF123",
           fmt::format("`{}` {}: exportfs exports it all the same, and mounting it fails", directory,
                       entry.error_number == ELOOP ? "leads in a circle of links" : "is longer than a name may be"));
  if (entry.exists() && entry.kind != sys::EntryKind::directory)
    report(Severity::error, "SF123", fmt::format("`{}` is no directory", directory));
  const auto* const mount = facts.mounts.at(entry.mount);
  const auto file_system = file_system_of(entry, facts.mounts);
  if (file_system.exportable == Exportable::no) {
    report(Severity::error, "SF125",
           fmt::format("`{}` lies on {}, which cannot be exported: {}", directory, entry.fs_type, file_system.why));
    return;
  }
  if (entry.kind != sys::EntryKind::directory)
    return;
  const bool checked = std::all_of(line.begin(), line.end(),
                                   [](const Export& client) { return !client.settings.has(k_no_subtree_check); });
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

} // namespace sharefs::exports
