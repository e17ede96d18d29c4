#include "mounts/boot.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "mounts/boot_text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr const char* k_wants = "multi-user.target.wants"; ///< the directory with the links that enable our units
constexpr const char* k_boot_group = "at boot";

/// The texts that make a mount point come back. If a text is empty, the unit, fstab or rc.local has no entry for it.
struct Wanted {
  UnitTexts units;
  std::optional<std::string> fstab, rc_local;
};

/// Returns the texts for a point and its way, or the reason why it cannot be mounted at boot by that way. `outer`: the
/// mount point above it that is mounted at boot, too; "" if there is none.
Result<Wanted> wanted_for(const BootFacts& facts, const BootHost& host, const MountPoint& point, BootWay way,
                          const std::string& outer) {
  Wanted wanted;
  if (way == BootWay::none)
    return wanted;
  const bool waits =
      !point.here && (way == BootWay::rc_local || way == BootWay::unit || (way == BootWay::fstab && host.systemd));
  if (waits && !host.unfit.empty())
    return fail(ErrorCode::failed, host.unfit,
                "install sharefs on this machine's own disk, where only root can write, as in /usr/bin");
  if (way == BootWay::rc_local) {
    if (facts.rc_local && (facts.rc_mode & 0100U) == 0 && has_other_commands(*facts.rc_local))
      return fail(ErrorCode::failed,
                  fmt::format("{} is not executable, and has other commands that would run, too", facts.rc_path),
                  fmt::format("see what is in it, then `chmod +x {}`", facts.rc_path));
    return rc_local_block(point, host.program, outer).map([&](std::string&& block) {
      wanted.rc_local = std::move(block);
      return wanted;
    });
  }
  if (way == BootWay::fstab && !host.systemd && !outer.empty())
    return fail(ErrorCode::failed,
                fmt::format("it lies below {}, for which a line of {} does not wait", outer, sys::k_fstab),
                "write `boot: rc.local`");
  if (way == BootWay::fstab) {
    TRY_ASSIGN(wanted.fstab, fstab_line(point, !host.systemd));
    if (!waits)
      return wanted;
  }
  TRY_ASSIGN(const auto units, unit_texts(point, host.program));
  if (waits)
    wanted.units.service = units.service;
  if (way != BootWay::fstab)
    wanted.units.mount = units.mount;
  if (way == BootWay::automount)
    wanted.units.automount = units.automount;
  return wanted;
}

void add_step(std::vector<plan::Step>& steps, std::string why, plan::Action action) {
  steps.push_back({k_boot_group, std::move(why), std::move(action)});
}

/// Collects the units, lines and blocks of all points, and makes one plan of them.
class BootPlanner {
 public:
  BootPlanner(const BootFacts& facts, const BootHost& host, std::set<std::string> targets, BootPlan& result)
      : m_facts(facts), m_host(host), m_targets(std::move(targets)), m_result(result) {
    for (const auto& entry : facts.entries)
      if (!entry.ours)
        m_foreign.insert_or_assign(entry.target, entry.origin);
  }

  void add_point(const MountPoint& point) {
    auto way = point.is_in_place()                ? BootWay::none
               : point.boot != BootWay::automatic ? point.boot
               : m_host.systemd                   ? BootWay::unit
                                                  : BootWay::rc_local;
    const auto names = unit_names(point.target);
    if (way != BootWay::none && (report_masked(point, names, way) || report_foreign(point, names, way)))
      return;
    if (const auto unsafe = m_host.unsafe.find(point.target); way != BootWay::none && unsafe != m_host.unsafe.end()) {
      report_impossible(point, unsafe->second);
      if (unsafe->second.code != ErrorCode::permission)
        return;
      way = BootWay::none; // an entry that was written before goes
    }
    const auto wanted = wanted_for(m_facts, m_host, point, way, find_outer(m_targets, point.target));
    if (!wanted) {
      report_impossible(point, wanted.error());
      return;
    }
    const auto why = fmt::format("{} is mounted at boot", name_of(point));
    const auto why_not =
        fmt::format("{} is {}", name_of(point), way == BootWay::none ? "not mounted at boot" : "mounted otherwise");
    // An .automount starts its .mount, and so does a service. multi-user.target starts only a .mount without both.
    const bool own_link = point.here && wanted->units.automount.empty();
    m_units.push_back({names.mount, wanted->units.mount, own_link, why, why_not});
    m_units.push_back({names.automount, wanted->units.automount, true, why, why_not});
    m_units.push_back({names.service, wanted->units.service, true, why, why_not});
    m_fstab.insert_or_assign(point.target, wanted->fstab);
    m_rc_local.insert_or_assign(point.target, wanted->rc_local);
    m_needs_rc_local = m_needs_rc_local || wanted->rc_local.has_value();
  }

  void finish() {
    const auto before = m_facts.fstab.value_or("");
    if (auto after = with_texts(BootFile::fstab, before, m_fstab); after != before)
      add_step(m_files, "what is mounted at boot", plan::File{sys::k_fstab, m_facts.fstab, std::move(after)});
    add_rc_local_steps();
    m_result.plan = plan_units(m_facts, m_host.systemd, m_units, m_files);
  }

 private:
  void report_impossible(const MountPoint& point, const Error& why) {
    m_result.diagnoses.push_back(
        about(point, Severity::error, "SF235", "it cannot be mounted at boot: " + why.message, why.hint));
  }

  /// Reports SF235 if systemd does not start one of the units, because it is masked: a link to /dev/null, or empty.
  bool report_masked(const MountPoint& point, const UnitTexts& names, BootWay way) {
    if (!m_host.systemd || way == BootWay::rc_local)
      return false;
    for (const auto& name : {names.mount, names.service, names.automount}) {
      const auto found = m_facts.units.find(name);
      if (found == m_facts.units.end() || !found->second.empty() ||
          (name == names.automount && way != BootWay::automount))
        continue;
      report_impossible(point, {ErrorCode::failed,
                                fmt::format("{} is masked", unit_path(name)),
                                fmt::format("`systemctl unmask {}`, then `sharefs mount {}`", shell_quote(name),
                                            shell_quote(name_of(point))),
                                {}});
      return true;
    }
    return false;
  }

  /// Reports SF234 if an entry of others mounts the point at boot, or has the line of fstab that counts. True: the
  /// point is left to it.
  bool report_foreign(const MountPoint& point, const UnitTexts& names, BootWay way) {
    const auto entry = m_foreign.find(point.target);
    auto origin = entry == m_foreign.end() ? "" : entry->second;
    for (const auto& name : {names.mount, names.automount}) {
      if (const auto found = m_facts.units.find(name); found != m_facts.units.end() && !is_ours(found->second))
        origin = unit_path(name);
      for (const auto& [path, text] : m_facts.elsewhere)
        if (base_name(path) == name)
          origin = path;
    }
    const bool mounts = !origin.empty();
    if (const auto idle = std::ranges::find(m_facts.others, point.target, &BootEntry::target);
        !mounts && way == BootWay::fstab && idle != m_facts.others.end())
      origin = idle->origin; // of two lines for one directory, mount(8) and systemd take the first
    if (!origin.empty())
      m_result.diagnoses.push_back(
          about(point, Severity::warning, "SF234",
                fmt::format(fmt::runtime(mounts ? "{} mounts {} at boot already: nothing was added to it"
                                                : "{} has a line for {} that does not mount it at boot (noauto): "
                                                  "nothing was added to it"),
                            origin, point.target),
                "take that entry away for sharefs to do it, or write `boot: none`"));
    return !origin.empty();
  }

  void add_rc_local_steps() {
    const auto& path = m_facts.rc_path;
    const auto before = m_facts.rc_local.value_or("");
    auto after = with_texts(BootFile::rc_local, before, m_rc_local);
    if (after != before && is_bare_rc_local(after))
      add_step(m_files, "nothing else is in it", plan::remove_file(path, before, m_facts.rc_mode));
    else if (after != before)
      add_step(m_files, "what is mounted at boot", plan::File{path, m_facts.rc_local, std::move(after), 0755});
    if (m_needs_rc_local && m_facts.rc_local && (m_facts.rc_mode & 0100U) == 0)
      add_step(m_files, "run at boot only if it is executable",
               plan::SetAccess{path, std::nullopt, {m_facts.rc_uid, m_facts.rc_gid, m_facts.rc_mode | 0111U, ""}});
  }

  const BootFacts& m_facts;
  const BootHost& m_host;
  std::set<std::string> m_targets; ///< what is mounted at boot
  BootPlan& m_result;
  std::map<std::string, std::string> m_foreign; ///< origin by target
  BootTexts m_fstab, m_rc_local;
  bool m_needs_rc_local = false;
  std::vector<BootUnit> m_units;
  std::vector<plan::Step> m_files; ///< steps that change fstab and rc.local
};

} // namespace

plan::Plan plan_units(const BootFacts& facts, bool systemd, const std::vector<BootUnit>& units,
                      const std::vector<plan::Step>& between) {
  std::vector<plan::Step> files, links, removals;
  plan::RunTool verify{{"systemd-analyze", "verify", "--recursive-errors=no"}, {}, true};
  verify.silent = true;
  for (const auto& [name, text, linked, why, why_not] : units) {
    const auto found = facts.units.find(name);
    const bool exists = found != facts.units.end();
    const auto path = unit_path(name), link = join_path(unit_path(k_wants), name);
    const auto by = facts.enabled.find(join_path(k_wants, name));
    const bool enabled = by != facts.enabled.end();
    if (text.empty() && exists && !is_ours(found->second))
      continue;
    if (!text.empty())
      verify.argv.push_back(path); // unchanged ones, too: an earlier run may have failed because of one of them
    if (!text.empty() && (!exists || found->second != text))
      add_step(files, why, plan::File{path, exists ? std::optional(found->second) : std::nullopt, text});
    if (!text.empty() && linked && !enabled) {
      if (!facts.wanted_by.contains(k_wants) && links.empty())
        add_step(links, "units that are started at boot", plan::make_directory(unit_path(k_wants)));
      add_step(links, "started at boot", plan::make_link(link, path));
    } else if (enabled && (text.empty() || !linked) && normalize_path(by->second, unit_path(k_wants)) == path) {
      add_step(removals, "no longer started at boot", plan::remove_link(link, by->second));
    }
    if (!text.empty() || !exists)
      continue;
    if (systemd && !name.ends_with(".mount"))
      add_step(removals, "it waits no longer",
               plan::RunTool{{"systemctl", "stop", name}, {"systemctl", "daemon-reload"}});
    add_step(removals, why_not, plan::remove_file(path, found->second));
  }
  const bool written = !files.empty() || !links.empty();
  // `between` may change fstab, and systemd makes units of its lines, too.
  const bool changed = written || !removals.empty() || !between.empty();
  plan::Plan plan;
  plan.steps = std::move(files);
  if (systemd && written)
    plan.add(k_boot_group, "systemd understands them", verify);
  append(plan.steps, links);
  append(plan.steps, between);
  append(plan.steps, removals);
  if (systemd && changed)
    plan.add(k_boot_group, "systemd reads its units again", plan::RunTool{{"systemctl", "daemon-reload"}, {}, true});
  return plan;
}

BootPlan plan_boot(const BootFacts& facts, const BootHost& host, const std::vector<MountPoint>& points) {
  BootPlan result;
  BootPlanner planner(facts, host, mounted_at_boot(facts, points), result);
  for (const auto& point : points)
    planner.add_point(point);
  planner.finish();
  return result;
}

BootPlan plan_boot(sys::System& system, const BootFacts& facts, const Observation& seen,
                   const std::vector<std::string>& without) {
  std::vector<MountPoint> points;
  for (const auto& state : seen.states)
    if (state.wanted && std::ranges::find(without, state.point.target) == without.end())
      points.push_back(state.point);
  if (points.empty())
    return {};
  auto host = read_boot_host(system);
  host.unsafe = find_unsafe_targets(system, facts, points, seen.table);
  return plan_boot(facts, host, points);
}

Diagnoses diagnose_left_at_boot(const BootFacts& facts, const std::vector<MountPoint>& all) {
  Diagnoses found;
  for (const auto& entry : facts.entries)
    if (entry.ours && std::ranges::find(all, entry.target, &MountPoint::target) == all.end())
      found.push_back({Severity::warning, "SF249", entry.target,
                       fmt::format("sharefs mounts {} there at boot ({}), and sharefs.yaml does not name it any more",
                                   entry.source, entry.origin),
                       fmt::format("`sharefs umount {} --forget` takes both away", shell_quote(entry.target)), ""});
  return found;
}

Diagnoses diagnose_not_mounted_at_boot(const BootFacts& facts, const std::vector<MountPoint>& all,
                                       const sys::MountTable& table) {
  Diagnoses found;
  for (const auto& entry : facts.entries)
    if (!entry.ours && table.at(entry.target) == nullptr &&
        std::ranges::find(all, entry.target, &MountPoint::target) == all.end())
      found.push_back({Severity::warning, "SF251", entry.target,
                       fmt::format("{} mounts {} there at boot, and nothing is mounted", entry.origin, entry.source),
                       "mount it; or take the entry away if nobody needs it, since it makes each boot wait for its "
                       "server",
                       entry.is_nfs() ? probe_command({.options = parse_options({entry.options})}, entry.source) : ""});
  return found;
}

} // namespace sharefs::mounts
