// Reads what this host mounts at boot, and what decides whether and how a mount can be made then.
#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/boot.hpp"
#include "mounts/boot_text.hpp"
#include "mounts/pending.hpp"
#include "mounts/shell_commands.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

namespace sharefs::mounts {

namespace {

constexpr std::size_t k_most_unit_text = 64U << 10U, k_most_text = 16U << 20U;

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

bool is_mount_unit(std::string_view name) {
  return name.ends_with(".mount") || name.ends_with(".automount");
}

std::vector<sys::Entry> ask(sys::System& system, const sys::EntryRequest& request) {
  return request.queries.empty() ? std::vector<sys::Entry>() : system.entries(request);
}

/// Reads the units among the `names` in /etc/systemd/system, and the links by which units are enabled.
void read_units(sys::System& system, const std::vector<std::string>& names, BootFacts& facts) {
  const auto is_read = [](std::string_view name) {
    return is_mount_unit(name) || (name.starts_with("sharefs") && name.ends_with(".service"));
  };
  const auto text_of = [](const std::string& path) {
    return sys::EntryQuery{.path = path, .follow = true, .read_bytes = k_most_unit_text};
  };
  sys::EntryRequest units, directories, links, elsewhere;
  for (const auto& name : names)
    if (is_read(name))
      units.queries.push_back(text_of(unit_path(name)));
    else if (name.ends_with(".wants") || name.ends_with(".requires"))
      directories.queries.push_back({.path = unit_path(name), .list = true});
  for (const auto& unit : ask(system, units))
    facts.units.emplace(base_name(unit.path), unit.content);
  for (const auto& directory : ask(system, directories)) {
    facts.wanted_by.insert(base_name(directory.path));
    for (const auto& name : directory.names)
      if (is_read(name))
        links.queries.push_back({.path = join_path(directory.path, name)});
  }
  for (const auto& link : ask(system, links)) {
    const auto name = base_name(link.path), directory = parent_path(link.path);
    facts.enabled.emplace(join_path(base_name(directory), name), link.link_target);
    const auto unit = normalize_path(link.link_target, directory);
    const auto there = facts.units.find(name); // it overrides those of other directories
    if (is_mount_unit(name) && unit != unit_path(name) && (there == facts.units.end() || is_ours(there->second)))
      elsewhere.queries.push_back(text_of(unit));
  }
  for (const auto& unit : ask(system, elsewhere))
    if (unit.exists())
      facts.elsewhere.emplace(unit.path, unit.content);
}

void add_fstab_entries(std::string_view text, BootFacts& facts) {
  for (const auto& line : sys::parse_fstab(text)) {
    if (line.target == "/")
      continue;
    const auto options = split(line.options, ',');
    BootEntry entry{line, BootWay::fstab, std::ranges::count(options, k_fstab_mark) > 0};
    entry.type = type_of(line.type, line.source);
    const bool at_boot =
        std::ranges::count(options, "noauto") == 0 || std::ranges::count(options, "x-systemd.automount") > 0;
    if ((entry.ours || sys::is_shared(entry.type, line.source)) && at_boot)
      facts.entries.push_back(std::move(entry));
    else if (is_remote(entry.type, line.source, options))
      facts.others.push_back(std::move(entry));
  }
}

void add_unit_entries(const BootFacts& facts, std::vector<BootEntry>& found) {
  std::set<std::string> enabled;
  for (const auto& [link, text] : facts.enabled)
    enabled.insert(base_name(link));
  auto units = facts.elsewhere; // by path
  for (const auto& [name, text] : facts.units)
    units.emplace(unit_path(name), text);
  for (const auto& [path, text] : units) {
    const auto name = base_name(path);
    if (!name.ends_with(".mount") || name == "-.mount")
      continue;
    const auto target = normalize_path(unescape_unit(name.substr(0, name.rfind('.'))));
    const auto names = unit_names(target);
    const bool automount = enabled.contains(names.automount);
    const bool at_boot = automount || enabled.contains(name) || enabled.contains(names.service);
    // A masked unit is a link to /dev/null, and has no text.
    auto unit = sys::parse_mount_unit(path, text);
    unit.target = target;
    unit.type = type_of(unit.type, unit.source);
    if (at_boot && (is_ours(text) || sys::is_shared(unit.type, unit.source)))
      found.push_back({std::move(unit), automount ? BootWay::automount : BootWay::unit, is_ours(text)});
  }
}

/// True for the program of `mount -t nfs -o OPTIONS SERVER:/path /target`, behind any words (`sudo`, `then`).
bool is_mount_program(const std::string& word) {
  const auto name = base_name(word);
  return name == "mount" || name.starts_with("mount.");
}

void add_rc_local_entries(const BootFacts& facts, std::vector<BootEntry>& found) {
  if ((facts.rc_mode & 0100U) == 0)
    return; // systemd and init run it only if it is executable
  const auto text = facts.rc_local.value_or("");
  std::vector<std::string> blocks; // the target of our block, for each line
  std::string block;
  for (const auto& line : split_lines(text)) {
    if (line.starts_with(k_block_begins))
      block = line.substr(k_block_begins.size());
    else if (line.starts_with(k_block_ends))
      block.clear();
    blocks.push_back(block);
  }
  const auto ending = ending_line(text);
  for (const auto& [line, words, always] : shell_commands(text)) {
    if (ending != 0 && line > ending)
      break; // it never runs
    const auto mount = read_mount_command({std::ranges::find_if(words, is_mount_program), words.end()});
    const auto& ours = blocks[line - 1];
    if (!mount || (ours.empty() && (!mount->target.starts_with('/') || !is_remote(mount->type, mount->source, {}))))
      continue;
    found.push_back(
        {{fmt::format("{}:{}", facts.rc_path, line), mount->source, ours.empty() ? normalize_path(mount->target) : ours,
          type_of(mount->type, mount->source), mount->options},
         BootWay::rc_local,
         !ours.empty()});
  }
}

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

  read_units(system, found[0].names, facts);
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

std::set<std::string> mounted_at_boot(const BootFacts& facts, const std::vector<MountPoint>& points) {
  std::set<std::string> targets;
  for (const auto& entry : facts.entries)
    targets.insert(entry.target);
  for (const auto& point : points)
    if (point.boot == BootWay::none || point.is_in_place())
      targets.erase(point.target);
    else
      targets.insert(point.target);
  return targets;
}

namespace {

/// Returns why a mount at `target` is unsafe, by its directory; nullopt: only root can put something else there. A
/// sticky directory is unsafe, too: at boot it may have been emptied.
std::optional<Error> find_fault(const std::string& target, const sys::Entry& directory) {
  if (directory.kind == sys::EntryKind::missing)
    return std::nullopt; // it is made by root, in a directory of root's
  auto error = directory.error();
  if (directory.kind == sys::EntryKind::directory) {
    const bool is_foreign = directory.uid != 0 && directory.uid != ::geteuid();
    if (!is_foreign && (directory.mode & 022U) == 0)
      return std::nullopt;
    error = {ErrorCode::permission,
             fmt::format("{}: others could replace `{}`: `{}` {}", target, base_name(target), directory.resolved,
                         is_foreign ? fmt::format("belongs to uid {}", directory.uid)
                                    : "has mode " + format_mode(directory.mode)),
             {},
             {}};
  }
  error.hint = error.code == ErrorCode::permission ? "let only root write in the directories above it, or mount it "
                                                     "elsewhere and make a link to it; or write `boot: "
                                                     "none`"
                                                   : "run `sharefs status`";
  return error;
}

} // namespace

std::map<std::string, Error> find_unsafe_targets(sys::System& system, const BootFacts& facts,
                                                 const std::vector<MountPoint>& points, const sys::MountTable& table) {
  auto absent = mounted_at_boot(facts, points);
  std::erase_if(absent, [&](const std::string& target) { return table.at(target) != nullptr; });
  std::map<std::string, Error> unsafe;
  std::map<std::string, std::vector<std::string>> targets_in;
  for (const auto& point : points)
    if (point.boot != BootWay::none && find_outer(absent, point.target).empty())
      targets_in[parent_path(point.target)].push_back(point.target);
  sys::EntryRequest questions;
  for (const auto& [directory, targets] : targets_in)
    questions.queries.push_back({.path = directory, .follow = true, .guarded = true});
  for (const auto& directory : targets_in.empty() ? std::vector<sys::Entry>() : system.entries(questions))
    for (const auto& target : targets_in[directory.path])
      if (auto fault = find_fault(target, directory))
        unsafe.emplace(target, std::move(*fault));
  return unsafe;
}

} // namespace sharefs::mounts
