#include "mounts/holders.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr std::size_t k_comm_bytes = 64;
constexpr std::size_t k_maps_bytes = 1U << 20U;
constexpr std::size_t k_mountinfo_bytes = 4U << 20U;

using Devices = std::set<std::pair<unsigned, unsigned>>; ///< device numbers (major, minor) of mounted superblocks

/// The result of one scan of all processes.
struct Scan {
  std::vector<ProcessFacts> processes;
  std::string own_namespace;
  std::map<std::string, std::pair<Holder, Devices>> other_namespaces; ///< by namespace
  std::set<std::string> gaps;
};

/// Reads these processes. A query that hung becomes a gap.
std::vector<sys::ProcessEntries> read(sys::System& system, Scan& scan, const std::vector<int>& pids,
                                      const std::vector<sys::EntryQuery>& queries, std::chrono::milliseconds deadline) {
  auto processes = sys::read_processes(system, pids, queries, deadline);
  for (const auto& process : processes)
    for (const auto* entries : {&process.entries, &process.descriptors})
      for (const auto& entry : *entries)
        if (entry.hung())
          scan.gaps.insert(fmt::format("{}: {}", entry.path, entry.detail));
  return processes;
}

void scan_links(sys::System& system, Scan& scan, std::chrono::milliseconds deadline) {
  scan.own_namespace = system.entry({.path = "/proc/self/ns/mnt"}, deadline).link_target;
  auto pids = sys::process_ids(system, deadline);
  std::erase(pids, system.identity().pid);
  const std::vector<sys::EntryQuery> queries{{.path = "comm", .read_bytes = k_comm_bytes},
                                             {.path = "wchan", .read_bytes = k_comm_bytes},
                                             {.path = "ns/mnt"},
                                             {.path = "fd", .list = true},
                                             {.path = "cwd"},
                                             {.path = "root"},
                                             {.path = "exe"}};
  for (const auto& [pid, entries, descriptors] : read(system, scan, pids, queries, deadline)) {
    ProcessFacts process;
    process.pid = pid;
    process.command = std::string(trim(entries[0].content));
    process.waits_in = entries[1].content;
    process.mount_namespace = entries[2].link_target;
    if (entries[3].error_number == EACCES)
      scan.gaps.insert("processes of other users are visible to root only");
    for (std::size_t at = 4; at < queries.size(); ++at)
      process.links.emplace_back(queries[at].path, entries[at].link_target);
    for (const auto& open : descriptors)
      process.links.emplace_back("fd " + base_name(open.path), open.link_target);
    scan.processes.push_back(std::move(process));
  }
}

/// Reads maps, and mountinfo once per other namespace. The kernel locks the memory of a process to read its maps, so
/// those of a process that hangs may be a gap.
void scan_maps(sys::System& system, Scan& scan, std::chrono::milliseconds deadline) {
  std::map<int, ProcessFacts*> by_pid;
  std::vector<int> own, others; // one of each other namespace
  std::set<std::string> seen{scan.own_namespace, ""};
  for (auto& process : scan.processes) {
    by_pid[process.pid] = &process;
    if (process.mount_namespace == scan.own_namespace)
      own.push_back(process.pid);
    if (seen.insert(process.mount_namespace).second)
      others.push_back(process.pid);
  }
  for (const auto& one : read(system, scan, own, {{.path = "maps", .read_bytes = k_maps_bytes}}, deadline))
    by_pid[one.pid]->mapped = mapped_files(one.entries[0].content);
  for (const auto& one :
       read(system, scan, others, {{.path = "mountinfo", .read_bytes = k_mountinfo_bytes}}, deadline)) {
    const auto& text = one.entries[0].content;
    const auto table = sys::MountTable::parse(text);
    if (text.empty() || !table)
      continue;
    const auto& process = *by_pid[one.pid];
    auto& [holder, devices] = scan.other_namespaces[process.mount_namespace];
    holder = {process.pid, process.command, {"another mount namespace"}};
    for (const auto& entry : table->entries())
      devices.emplace(entry.major, entry.minor);
  }
}

/// Returns those of `targets` that are `path` or lie above it.
std::vector<std::string> targets_above(const std::set<std::string>& targets, const std::string& path) {
  std::vector<std::string> found;
  for (std::string at = path; at.starts_with('/'); at = at == "/" ? "" : parent_path(at))
    if (targets.contains(at))
      found.push_back(at);
  return found;
}

} // namespace

std::vector<std::string> mapped_files(const std::string& maps) {
  std::set<std::string> files;
  for (const auto& line : split_lines(maps))
    if (const auto slash = line.find(" /"); slash != std::string::npos)
      files.insert(line.substr(slash + 1));
  return {files.begin(), files.end()};
}

Holders holders_of(const std::set<std::string>& targets, const std::vector<ProcessFacts>& processes,
                   const std::string& own_namespace) {
  Holders holders;
  for (const auto& process : processes) {
    if (process.mount_namespace != own_namespace)
      continue;
    std::map<std::string, std::vector<std::string>> uses; // by target
    for (const auto& [how, path] : process.links)
      for (const auto& target : targets_above(targets, path))
        uses[target].push_back(how + " " + path);
    std::set<std::string> mapped; // only one file per target: a Python process may map hundreds
    for (const auto& file : process.mapped)
      for (const auto& target : targets_above(targets, file))
        if (mapped.insert(target).second)
          uses[target].push_back("mapped " + file);
    for (auto& [target, texts] : uses)
      holders[target].push_back({process.pid, process.command, std::move(texts)});
  }
  return holders;
}

std::vector<Holder> find_waiting(const std::vector<ProcessFacts>& processes, const std::string& own_namespace) {
  std::vector<Holder> waiting;
  for (const auto& process : processes) {
    const bool waits = process.waits_in.starts_with("rpc_") || process.waits_in.starts_with("nfs");
    const bool is_program = std::ranges::any_of(
        process.links, [](const auto& link) { return link.first == "exe" && !link.second.empty(); });
    if (waits && is_program && process.mount_namespace == own_namespace)
      waiting.push_back({process.pid, process.command, {"waits for an NFS server"}});
  }
  return waiting;
}

std::map<std::string, HolderReport> find_holders(sys::System& system, const std::vector<sys::MountEntry>& mounts,
                                                 std::chrono::milliseconds deadline) {
  std::map<std::string, HolderReport> reports;
  Scan scan;
  scan_links(system, scan, deadline);
  scan_maps(system, scan, deadline);
  std::set<std::string> targets;
  for (const auto& mount : mounts)
    targets.insert(mount.target);
  auto holders = holders_of(targets, scan.processes, scan.own_namespace);
  const auto waiting = find_waiting(scan.processes, scan.own_namespace);
  for (const auto& mount : mounts) {
    HolderReport report{holders[mount.target], {}, waiting, {scan.gaps.begin(), scan.gaps.end()}};
    std::erase_if(report.waiting, [&](const Holder& one) {
      return std::ranges::find(report.holders, one.pid, &Holder::pid) != report.holders.end();
    });
    for (const auto& [name, other] : scan.other_namespaces)
      if (other.second.contains({mount.major, mount.minor}))
        report.namespaces.push_back(other.first);
    reports.emplace(mount.target, std::move(report));
  }
  return reports;
}

std::vector<std::string> describe(const HolderReport& report, std::size_t limit) {
  std::vector<std::string> lines;
  std::vector<const Holder*> all;
  for (const auto* list : {&report.holders, &report.waiting, &report.namespaces})
    for (const auto& one : *list)
      all.push_back(&one);
  for (std::size_t index = 0; index < all.size() && index < limit; ++index)
    lines.push_back(fmt::format("pid {} ({}): {}", all[index]->pid, all[index]->command, join(all[index]->uses, ", ")));
  if (all.size() > limit)
    lines.push_back(fmt::format("and {} more", all.size() - limit));
  return lines;
}

Diagnosis diagnose_busy(const std::string& target, const HolderReport& report) {
  const auto busy = [&target](std::string message, std::string hint) {
    return Diagnosis{Severity::error, "SF229", target, target + " is " + std::move(message), std::move(hint), ""};
  };
  if (!report.holders.empty())
    return busy("in use by " +
                    (report.holders.size() == 1 ? "1 process" : fmt::format("{} processes", report.holders.size())),
                "end them, or use --lazy: they keep the mount until they end");
  if (!report.waiting.empty())
    return busy("busy; processes that wait for an NFS server may be the reason",
                "with the server away, --force --lazy ends their waiting and detaches the mount");
  return busy("busy, but no process that uses it was seen",
              "data of a writer that has ended may still be on its way to the server: try again in a moment; else a "
              "loop device, a swap file or an overlay uses it, and --lazy detaches it all the same");
}

} // namespace sharefs::mounts
