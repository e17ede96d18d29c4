#pragma once
// What this machine mounts at boot, by all that can say so: fstab, systemd's units and rc.local; and what has to change
// so that the mounts of sharefs.yaml come back, each by one of them.
#include "base/diagnosis.hpp"
#include "mounts/plan_unmount.hpp"
#include "mounts/probe.hpp"
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

/// Something that mounts at boot.
struct BootEntry {
  BootWay way = BootWay::none;
  std::string target{};  ///< absolute, normalized
  std::string source{};  ///< "storage1:/mnt/share"
  std::string options{}; ///< as they stand there
  std::string origin{};  ///< "/etc/fstab:3", a unit's file
  bool ours = false;     ///< written by sharefs
  std::string type{};    ///< "nfs", "glusterfs"; where none is given, what mount(8) takes the source for
  [[nodiscard]] bool is_nfs() const { return type == "nfs" || type == "nfs4"; }
  friend bool operator==(const BootEntry&, const BootEntry&) = default;
};

/// As the machine has it. Units are those of /etc/systemd/system, which win over fstab's and the distribution's.
struct BootFacts {
  std::optional<std::string> fstab;
  std::string rc_path; ///< where rc.local is, or would be: Debian's or the RHEL family's path
  std::optional<std::string> rc_local;
  std::uint32_t rc_mode = 0, rc_uid = 0, rc_gid = 0;
  std::map<std::string, std::string> units; ///< text by name: .mount, .automount, and services of ours (sharefs*)
  std::set<std::string> enabled;            ///< "multi-user.target.wants/x.mount": links and directories' names
  std::set<std::string> wanted_by;          ///< directories that hold links: "multi-user.target.wants"
  /// Of fstab (without noauto) and of the enabled units: network file systems only. Of rc.local our blocks, and lines
  /// with a `mount` of a network file system.
  std::vector<BootEntry> entries;
  /// Lines of fstab for storage elsewhere that nothing mounts at boot (noauto), or whose file system is not known here.
  std::vector<BootEntry> others;
};
BootFacts boot_facts(sys::System& system);

/// What else there is to know before an entry is written.
struct BootHost {
  bool systemd = false; ///< it runs
  std::string program;  ///< sharefs itself
  std::string unfit;    ///< why root must not, or cannot, run that at boot
};
BootHost boot_host(sys::System& system);

/// A unit of ours as it is to be.
struct BootUnit {
  std::string name;
  std::string text;         ///< empty: there is to be none
  bool linked = true;       ///< multi-user.target starts it
  std::string why, why_not; ///< it is written, or taken away
};
/// What makes units so, and systemd read them. A unit that others wrote is never taken away. `between`: steps behind
/// those that write and link units, and in front of those that take units away.
plan::Plan plan_units(const BootFacts& facts, bool systemd, const std::vector<BootUnit>& units,
                      const std::vector<plan::Step>& between = {});

struct BootPlan {
  plan::Plan plan;
  Diagnoses diagnoses; ///< SF234: something else mounts it at boot; SF235: it cannot be written
};
/// What makes each of `points` (decided) come back at boot by its own way and no other; a point whose way is `none`
/// loses what sharefs wrote for it. What others wrote is never touched.
BootPlan plan_boot(const BootFacts& facts, const BootHost& host, const std::vector<MountPoint>& points);

/// The same for the wanted mounts of `seen` on this machine, but for the targets `without`: of one that is blocked, the
/// options are not known.
BootPlan plan_boot(sys::System& system, const BootFacts& facts, const Observation& seen,
                   const std::vector<std::string>& without);

/// SF249: what sharefs mounts at boot for an earlier sharefs.yaml; `all` are the mounts of the present one.
Diagnoses diagnose_left_at_boot(const BootFacts& facts, const std::vector<MountPoint>& all);

/// Adds to the plan that unmounts `points` what takes away how sharefs mounts them at boot, but for those that it
/// leaves mounted.
void forget_at_boot(const BootFacts& facts, const BootHost& host, const sys::MountTable& table,
                    std::vector<MountPoint> points, MountPlan& plan);

/// Makes of a plan that takes back changes at boot one that does so on what these files hold now: our entries become
/// what they were, as plan_boot() changes them, and every byte that others have written since stays.
void undo_on_what_is_there(const BootFacts& facts, plan::Plan& plan);

} // namespace sharefs::mounts
