#pragma once
// Values that several tests of this room begin with. The mountinfo lines are those of a Linux 6.1 client.
#include "base/path.hpp"
#include "mounts/probe.hpp"
#include "support/scripted_system.hpp"

#include <cerrno>

namespace sharefs::test {

inline constexpr const char* k_root_line = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n";
inline constexpr const char* k_v42_super =
    "rw,vers=4.2,rsize=262144,wsize=262144,namlen=255,hard,proto=tcp,nconnect=4,timeo=600,retrans=2,sec=sys,"
    "clientaddr=10.77.0.2,local_lock=none,addr=10.77.0.1";
inline constexpr const char* k_v3_super =
    "rw,vers=3,rsize=262144,wsize=262144,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,mountaddr=10.77.0.1,"
    "mountvers=3,mountport=20048,mountproto=udp,local_lock=none,addr=10.77.0.1";

/// A mountinfo line of an NFS mount.
inline std::string nfs_line(int id, int parent, const std::string& target, const std::string& source,
                            const std::string& super = k_v42_super,
                            const std::string& options = "rw,nosuid,nodev,relatime") {
  const auto type = super.find("vers=4") == std::string::npos ? "nfs" : "nfs4";
  return std::to_string(id) + " " + std::to_string(parent) + " 0:" + std::to_string(40 + id) + " / " + target + " " +
         options + " shared:" + std::to_string(id) + " - " + type + " " + source + " " + super + "\n";
}

inline sys::MountTable table_of(const std::string& lines) {
  auto table = sys::MountTable::parse(k_root_line + lines);
  return table ? *table : sys::MountTable();
}

inline sys::MountEntry entry(const std::string& super, const std::string& options = "rw,relatime",
                             const std::string& source = "storage1:/mnt/share") {
  sys::MountEntry mount;
  mount.id = 50;
  mount.parent = 1;
  mount.root = "/";
  mount.target = "/data/share";
  mount.fs_type = super.find("vers=4") == std::string::npos ? "nfs" : "nfs4";
  mount.source = source;
  mount.options = options;
  mount.super_options = super;
  return mount;
}

inline mounts::MountPoint share(const std::string& name = "share", const std::string& target = "/data/share") {
  return {.name = name, .server = "storage1", .path = "/mnt/" + name, .target = target};
}

/// A server that offers all and lets this host mount `directories`.
inline sys::NfsProbe good_server(const std::vector<std::string>& directories = {"/mnt/share"}) {
  sys::NfsProbe probe;
  probe.host = "storage1";
  probe.address = "10.77.0.1";
  probe.v3 = probe.v4 = true;
  for (const auto stage :
       {sys::ProbeStage::resolve, sys::ProbeStage::connect, sys::ProbeStage::portmapper, sys::ProbeStage::mountd,
        sys::ProbeStage::nfs3, sys::ProbeStage::nfs4, sys::ProbeStage::exports, sys::ProbeStage::access})
    probe.stages.push_back({stage, sys::StageOutcome::ok, std::chrono::microseconds(100), "", "", ""});
  for (const auto& directory : directories) {
    probe.exports.push_back({directory, {"10.77.0.0/24"}});
    probe.access.push_back({directory, true, ""});
  }
  return probe;
}

inline sys::NfsProbe dead_server() {
  sys::NfsProbe probe;
  probe.host = "storage1";
  probe.address = "10.77.0.1";
  probe.stages = {
      {sys::ProbeStage::resolve, sys::StageOutcome::ok, {}, "10.77.0.1", "", ""},
      {sys::ProbeStage::connect, sys::StageOutcome::failed, {}, "no answer", "it is off", "see if it is on"}};
  for (const auto stage : {sys::ProbeStage::portmapper, sys::ProbeStage::mountd, sys::ProbeStage::nfs3,
                           sys::ProbeStage::nfs4, sys::ProbeStage::exports, sys::ProbeStage::access})
    probe.stages.push_back({stage, sys::StageOutcome::skipped, {}, "", "", ""});
  return probe;
}

/// What a mount point answers: a directory with free space, or an error.
inline sys::Entry answered(int error_number = 0, std::chrono::microseconds latency = std::chrono::milliseconds(1)) {
  sys::Entry entry;
  entry.kind = error_number == 0 ? sys::EntryKind::directory : sys::EntryKind::unknown;
  entry.error_number = error_number;
  entry.detail = error_number == 0 ? "" : errno_text(error_number);
  if (error_number == 0)
    entry.space = sys::Space{latency, 1U << 20U, 1U << 10U, 0, 0};
  return entry;
}
/// Nothing at a path; the nearest directory above is `ancestor`.
inline sys::Entry missing_below(const std::string& ancestor) {
  sys::Entry entry;
  entry.kind = sys::EntryKind::missing;
  entry.error_number = ENOENT;
  entry.ancestor = ancestor;
  return entry;
}

/// Nothing lies at paths that the machine does not name.
inline void leave_rest_missing(ScriptedSystem& system) {
  system.machine.on_entry = [&system](const sys::EntryQuery& query,
                                      const std::optional<sys::User>&) -> std::optional<sys::Entry> {
    for (const auto& [path, entry] : system.machine.entries)
      if (path == query.path || (entry.error_number == ETIMEDOUT && is_under(query.path, path)))
        return std::nullopt;
    return missing_below(parent_path(query.path));
  };
}

inline void add_file(ScriptedSystem& system, const std::string& path, std::string content) {
  auto& entry = system.machine.entries[path];
  entry.kind = sys::EntryKind::file;
  entry.content = std::move(content);
}
inline void add_link(ScriptedSystem& system, const std::string& path, std::string target) {
  auto& entry = system.machine.entries[path];
  entry.kind = sys::EntryKind::symlink;
  entry.link_target = std::move(target);
}
inline void add_directory(ScriptedSystem& system, const std::string& path, std::vector<std::string> names = {}) {
  auto& entry = system.machine.entries[path];
  entry.kind = sys::EntryKind::directory;
  entry.mode = 0755;
  entry.names = std::move(names);
}

/// The point of the share with these options.
inline mounts::MountPoint point_with(const std::string& options) {
  mounts::MountPoint point{.name = "share", .server = "storage1", .path = "/mnt/share", .target = "/data/share"};
  point.options = mounts::parse_options({options});
  return point;
}

inline bool has_code(const Diagnoses& diagnoses, const std::string& code) {
  for (const auto& one : diagnoses)
    if (one.code == code)
      return true;
  return false;
}

} // namespace sharefs::test
