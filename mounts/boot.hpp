#pragma once
// Mounts at boot: reads what fstab, systemd's units and rc.local mount, and plans the changes so that each mount of
// sharefs.yaml comes back by one of them.
#include "base/diagnosis.hpp"
#include "mounts/plan_mount.hpp"
#include "mounts/probe.hpp"
#include "plan/plan.hpp"
#include "sys/configured_mounts.hpp"
#include "sys/system.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

/// One entry that mounts something at boot. If it names no type, `type` is the one that mount(8) guesses by the source.
struct BootEntry : sys::ConfiguredMount {
  BootWay way = BootWay::none;
  bool ours = false; ///< sharefs has written it
  [[nodiscard]] bool is_nfs() const { return type == "nfs" || type == "nfs4"; }
  friend bool operator==(const BootEntry&, const BootEntry&) = default;
};

/// The files of this machine that mount at boot. Units are read from /etc/systemd/system, because these override the
/// units of fstab and of the distribution; and where the links lead that enable units from elsewhere.
struct BootFacts {
  std::optional<std::string> fstab;
  std::string rc_path; ///< the path of rc.local in Debian or in the RHEL family, even if there is none
  std::optional<std::string> rc_local;
  std::uint32_t rc_mode = 0, rc_uid = 0, rc_gid = 0;
  std::map<std::string, std::string> units;     ///< texts by name: .mount, .automount, and services of ours (sharefs*)
  std::map<std::string, std::string> elsewhere; ///< texts of the enabled units of other directories, by path
  /// The texts of the links by which units are enabled, by "multi-user.target.wants/x.mount".
  std::map<std::string, std::string> enabled;
  std::set<std::string> wanted_by; ///< names of the directories that hold such links
  /// Entries of network file systems, and our own: lines of fstab (without noauto, or with x-systemd.automount),
  /// enabled units, and of rc.local our blocks and lines with a `mount`.
  std::vector<BootEntry> entries;
  /// Lines of fstab for storage on other machines that are not mounted at boot (noauto), or whose file system sharefs
  /// does not know.
  std::vector<BootEntry> others;
};
BootFacts read_boot_facts(sys::System& system);

/// The facts about the host that decide how an entry is written.
struct BootHost {
  bool systemd = false;                     ///< systemd runs
  std::string program;                      ///< path of sharefs itself
  std::string unfit;                        ///< why root cannot, or must not, run `program` at boot; empty: it can
  std::map<std::string, Error> unsafe = {}; ///< see find_unsafe_targets()
};
/// Reads all but `unsafe`.
BootHost read_boot_host(sys::System& system);

/// Returns the targets that are mounted at boot: of the entries, and of those `points` that have a way.
std::set<std::string> mounted_at_boot(const BootFacts& facts, const std::vector<MountPoint>& points);

/// Returns why `points` must not be mounted at boot, by target. What mounts there resolves the path anew, so whoever
/// can replace a part of it could have the share mounted over any directory of this host: `permission`. Other errors:
/// the directory does not answer. A target below a mount that is absent now has no error: who can replace it is seen
/// once that is mounted.
std::map<std::string, Error> find_unsafe_targets(sys::System& system, const BootFacts& facts,
                                                 const std::vector<MountPoint>& points, const sys::MountTable& table);

/// A unit of sharefs that is to be written or removed.
struct BootUnit {
  std::string name;
  std::string text;         ///< empty: the unit is removed
  bool linked = true;       ///< multi-user.target starts it
  std::string why, why_not; ///< the reasons of the steps that write it, or remove it
};
/// Plans the steps that write and remove the units, and that make systemd read its units again. A unit that others
/// wrote is never removed. `between`: steps that come after the units are written and linked, and before units are
/// removed.
plan::Plan plan_units(const BootFacts& facts, bool systemd, const std::vector<BootUnit>& units,
                      const std::vector<plan::Step>& between = {});

struct BootPlan {
  plan::Plan plan;
  Diagnoses diagnoses; ///< SF234: something else mounts it at boot; SF235: the entry cannot be written
};
/// Plans that each of `points` (after decide()) is mounted at boot by its own way and by no other. For a point whose
/// way is `none` the entries of sharefs are removed. Entries of others are never changed.
BootPlan plan_boot(const BootFacts& facts, const BootHost& host, const std::vector<MountPoint>& points);

/// Plans the same for the wanted mounts of `seen` on this machine, except for the targets `without`: the options of a
/// blocked mount are not known.
BootPlan plan_boot(sys::System& system, const BootFacts& facts, const Observation& seen,
                   const std::vector<std::string>& without);

/// Reports our entries that an earlier sharefs.yaml has left (SF249). `all` are the mounts of the present one.
Diagnoses diagnose_left_at_boot(const BootFacts& facts, const std::vector<MountPoint>& all);

/// Reports the mounts that others mount at boot and that are not mounted now (SF251). `all` are the mounts of
/// sharefs.yaml, which have diagnoses of their own.
Diagnoses diagnose_not_mounted_at_boot(const BootFacts& facts, const std::vector<MountPoint>& all,
                                       const sys::MountTable& table);

/// Adds steps to a plan that unmounts `points`, so that sharefs does not mount them at boot any more. Points that are
/// blocked, and so stay mounted, keep their entries.
void forget_at_boot(const BootFacts& facts, const BootHost& host, const sys::MountTable& table,
                    std::vector<MountPoint> points, MountPlan& plan);

/// Changes the steps of an undo so that they start from the present content of the boot files: our entries become what
/// they were, and every byte that others have written since stays.
void rebase_boot_undo(const BootFacts& facts, plan::Plan& plan);

} // namespace sharefs::mounts
