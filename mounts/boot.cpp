#include "mounts/boot.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "mounts/boot_text.hpp"
#include "mounts/pending.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr const char* k_wants = "multi-user.target.wants"; ///< the directory with the links that enable our units
constexpr const char* k_boot_group = "at boot";
constexpr std::size_t k_most_unit_text = 64U << 10U, k_most_text = 16U << 20U;

std::string unit_path(const std::string& name) {
  return join_path(sys::k_unit_directory, name);
}

bool is_ours(std::string_view unit) {
  return unit.starts_with(k_unit_mark);
}

/// Returns the type that mount(8) uses. If none is given, it guesses by the source (libmount's
/// mnt_context_guess_fstype).
std::string type_of(std::string_view type, std::string_view source) {
  if (!type.empty() && type != "auto")
    return std::string(type);
  return source.starts_with("//") ? "cifs" : source.find(":/") != std::string_view::npos ? "nfs" : "";
}

/// True for storage on another machine.
bool is_remote(const std::string& type, const std::string& source, const std::vector<std::string>& options) {
  return sys::may_hang(type) || std::ranges::count(options, "_netdev") > 0 || source.starts_with("//") ||
         (!source.starts_with('/') && source.find(":/") != std::string::npos);
}

void add_fstab_entries(std::string_view text, BootFacts& facts) {
  for (const auto& line : sys::parse_fstab(text)) {
    if (line.target == "/")
      continue;
    const auto options = split(line.options, ',');
    BootEntry entry{line, BootWay::fstab, std::ranges::count(options, k_fstab_mark) > 0};
    entry.type = type_of(line.type, line.source);
    if ((entry.ours || sys::is_shared(entry.type, line.source)) && std::ranges::count(options, "noauto") == 0)
      facts.entries.push_back(std::move(entry));
    else if (is_remote(entry.type, line.source, options))
      facts.others.push_back(std::move(entry));
  }
}

void add_unit_entries(const BootFacts& facts, std::vector<BootEntry>& found) {
  std::set<std::string> enabled;
  for (const auto& link : facts.enabled)
    enabled.insert(base_name(link));
  for (const auto& [name, text] : facts.units) {
    if (!name.ends_with(".mount") || name == "-.mount")
      continue;
    const auto target = normalize_path(unescape_unit(name.substr(0, name.rfind('.'))));
    const auto names = unit_names(target);
    const bool automount = enabled.contains(names.automount);
    const bool at_boot = automount || enabled.contains(name) || enabled.contains(names.service);
    // A masked unit is a link to /dev/null, and has no text.
    auto unit = sys::parse_mount_unit(unit_path(name), text);
    unit.target = target;
    unit.type = type_of(unit.type, unit.source);
    if (at_boot && (is_ours(text) || sys::is_shared(unit.type, unit.source)))
      found.push_back({std::move(unit), automount ? BootWay::automount : BootWay::unit, is_ours(text)});
  }
}

/// Splits a line of a shell script into simple commands, and these into words without quotes. Variables and other
/// expansions stay as they are written.
std::vector<std::vector<std::string>> shell_commands(std::string_view line) {
  std::vector<std::vector<std::string>> commands(1);
  std::string word;
  bool in_word = false;
  char quote = 0;
  const auto end_word = [&] {
    if (std::exchange(in_word, false))
      commands.back().push_back(std::exchange(word, {}));
  };
  for (const char c : line) {
    if (quote == 0 && c == '#' && !in_word)
      break;
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote == 0 ? c : '\0';
      in_word = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      end_word();
    } else if (quote == 0 && std::string_view(";&|()").find(c) != std::string_view::npos) {
      end_word();
      commands.emplace_back();
    } else {
      word += c;
      in_word = true;
    }
  }
  end_word();
  return commands;
}

/// True for the program of `mount -t nfs -o OPTIONS SERVER:/path /target`, behind any words (`sudo`, `then`).
bool is_mount_program(const std::string& word) {
  const auto name = base_name(word);
  return name == "mount" || name.starts_with("mount.");
}

void add_rc_local_entries(const BootFacts& facts, std::vector<BootEntry>& found) {
  if ((facts.rc_mode & 0100U) == 0)
    return; // systemd and init run it only if it is executable
  std::string block;
  std::size_t number = 0;
  for (const auto& line : split_lines(facts.rc_local.value_or(""))) {
    ++number;
    if (line.starts_with(k_block_begins))
      block = line.substr(k_block_begins.size());
    else if (line.starts_with(k_block_ends))
      block.clear();
    else if (const auto words = split_words(line); line.starts_with("exit") && !words.empty() && words[0] == "exit")
      break; // at the begin of a line: what follows never runs
    for (const auto& words : shell_commands(line)) {
      const auto mount = read_mount_command({std::ranges::find_if(words, is_mount_program), words.end()});
      if (!mount || (block.empty() && (!mount->target.starts_with('/') || !is_remote(mount->type, mount->source, {}))))
        continue;
      found.push_back(
          {{fmt::format("{}:{}", facts.rc_path, number), mount->source,
            block.empty() ? normalize_path(mount->target) : block, type_of(mount->type, mount->source), mount->options},
           BootWay::rc_local,
           !block.empty()});
    }
  }
}

/// The texts that make a mount point come back. If a text is empty, the unit, fstab or rc.local has no entry for it.
struct Wanted {
  UnitTexts units;
  std::optional<std::string> fstab, rc_local;
};

/// Returns the texts for a point and its way, or the reason why it cannot be mounted at boot by that way.
Result<Wanted> wanted_for(const BootFacts& facts, const BootHost& host, const MountPoint& point, BootWay way) {
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
    return rc_local_block(point, host.program).map([&](std::string&& block) {
      wanted.rc_local = std::move(block);
      return wanted;
    });
  }
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
  BootPlanner(const BootFacts& facts, const BootHost& host, BootPlan& result)
      : m_facts(facts), m_host(host), m_result(result) {
    for (const auto& entry : facts.entries)
      if (!entry.ours)
        m_foreign.insert_or_assign(entry.target, entry.origin);
  }

  void add_point(const MountPoint& point) {
    const auto way = point.is_in_place()                ? BootWay::none
                     : point.boot != BootWay::automatic ? point.boot
                     : m_host.systemd                   ? BootWay::unit
                                                        : BootWay::rc_local;
    const auto names = unit_names(point.target);
    if (way != BootWay::none && (report_masked(point, names, way) || report_foreign(point, names, way)))
      return;
    const auto wanted = wanted_for(m_facts, m_host, point, way);
    if (!wanted) {
      m_result.diagnoses.push_back(about(point, Severity::error, "SF235",
                                         "it cannot be mounted at boot: " + wanted.error().message,
                                         wanted.error().hint));
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
  /// Reports SF235 if systemd does not start one of the units, because it is masked: a link to /dev/null, or empty.
  bool report_masked(const MountPoint& point, const UnitTexts& names, BootWay way) {
    if (!m_host.systemd || way == BootWay::rc_local)
      return false;
    for (const auto& name : {names.mount, names.service, names.automount}) {
      const auto found = m_facts.units.find(name);
      if (found == m_facts.units.end() || !found->second.empty() ||
          (name == names.automount && way != BootWay::automount))
        continue;
      m_result.diagnoses.push_back(about(point, Severity::error, "SF235",
                                         fmt::format("it cannot be mounted at boot: {} is masked", unit_path(name)),
                                         fmt::format("`systemctl unmask {}`, then `sharefs mount {}`",
                                                     shell_quote(name), shell_quote(name_of(point)))));
      return true;
    }
    return false;
  }

  /// Reports SF234 if an entry of others mounts the point at boot, or has the line of fstab that counts. True: the
  /// point is left to it.
  bool report_foreign(const MountPoint& point, const UnitTexts& names, BootWay way) {
    const auto entry = m_foreign.find(point.target);
    auto origin = entry == m_foreign.end() ? "" : entry->second;
    for (const auto& name : {names.mount, names.automount})
      if (const auto found = m_facts.units.find(name); found != m_facts.units.end() && !is_ours(found->second))
        origin = unit_path(name);
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
  BootPlan& m_result;
  std::map<std::string, std::string> m_foreign; ///< origin by target
  BootTexts m_fstab, m_rc_local;
  bool m_needs_rc_local = false;
  std::vector<BootUnit> m_units;
  std::vector<plan::Step> m_files; ///< steps that change fstab and rc.local
};

} // namespace

BootFacts read_boot_facts(sys::System& system) {
  BootFacts facts;
  const auto text_of = [](const sys::Entry& entry) {
    return entry.exists() ? std::optional(entry.content) : std::nullopt;
  };
  auto found = system.entries({{{.path = sys::k_unit_directory, .list = true},
                                {.path = sys::k_fstab, .follow = true, .read_bytes = k_most_text},
                                {.path = "/etc/rc.local", .follow = true, .read_bytes = k_most_text},
                                {.path = "/etc/rc.d"}}});
  facts.fstab = text_of(found[1]);
  auto& rc_local = found[2]; // in the RHEL family it is a link into rc.d
  if (!rc_local.exists() && found[3].kind == sys::EntryKind::directory)
    rc_local = system.entry({.path = "/etc/rc.d/rc.local", .follow = true, .read_bytes = k_most_text});
  facts.rc_local = text_of(rc_local);
  facts.rc_path = rc_local.exists() ? rc_local.resolved : rc_local.path;
  facts.rc_mode = rc_local.mode;
  facts.rc_uid = rc_local.uid;
  facts.rc_gid = rc_local.gid;

  sys::EntryRequest questions;
  for (const auto& name : found[0].names)
    if (name.ends_with(".mount") || name.ends_with(".automount") ||
        (name.starts_with("sharefs") && name.ends_with(".service")))
      questions.queries.push_back({.path = unit_path(name), .follow = true, .read_bytes = k_most_unit_text});
  const auto units = questions.queries.size();
  for (const auto& name : found[0].names)
    if (name.ends_with(".wants") || name.ends_with(".requires")) {
      facts.wanted_by.insert(name);
      questions.queries.push_back({.path = unit_path(name), .list = true});
    }
  const auto answers = units == 0 ? std::vector<sys::Entry>() : system.entries(questions);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto name = base_name(answers[i].path);
    if (i < units)
      facts.units.emplace(name, answers[i].content);
    else
      for (const auto& link : answers[i].names)
        facts.enabled.insert(join_path(name, link));
  }
  add_fstab_entries(facts.fstab.value_or(""), facts);
  add_unit_entries(facts, facts.entries);
  add_rc_local_entries(facts, facts.entries);
  return facts;
}

BootHost read_boot_host(sys::System& system) {
  const auto link = system.entry({.path = "/proc/self/exe"}).link_target;
  BootHost host{system.identity().systemd, link.empty() ? "/usr/bin/sharefs" : link, ""};
  const auto program = system.entry({.path = host.program, .guarded = true});
  if (program.shared)
    host.unfit = fmt::format("{} lies on a share, and is not there at boot", host.program);
  else if (!link.empty() && program.kind != sys::EntryKind::file)
    host.unfit = fmt::format("root would run {} at each boot: {}", host.program, program.error().message);
  else if (program.exists() && (program.uid != 0 || (program.mode & 022U) != 0))
    host.unfit = fmt::format("root would run {} at each boot, which others may write: it belongs to uid {} and has "
                             "mode {}",
                             host.program, program.uid, format_mode(program.mode));
  return host;
}

plan::Plan plan_units(const BootFacts& facts, bool systemd, const std::vector<BootUnit>& units,
                      const std::vector<plan::Step>& between) {
  std::vector<plan::Step> files, links, removals;
  plan::RunTool verify{{"systemd-analyze", "verify", "--recursive-errors=no"}, {}, true};
  verify.silent = true;
  for (const auto& [name, text, linked, why, why_not] : units) {
    const auto found = facts.units.find(name);
    const bool exists = found != facts.units.end();
    const auto path = unit_path(name), link = join_path(unit_path(k_wants), name);
    const bool enabled = facts.enabled.contains(join_path(k_wants, name));
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
    } else if (enabled && (text.empty() || !linked)) {
      add_step(removals, "no longer started at boot", plan::remove_link(link, path));
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
  BootPlanner planner(facts, host, result);
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
  return points.empty() ? BootPlan{} : plan_boot(facts, read_boot_host(system), points);
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
