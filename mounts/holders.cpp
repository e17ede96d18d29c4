#include "mounts/holders.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/pending.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <set>

namespace sharefs::mounts {

namespace {

constexpr std::size_t k_comm_bytes = 64;
constexpr std::size_t k_maps_bytes = 1U << 20U;
constexpr std::size_t k_mountinfo_bytes = 4U << 20U;

using Answers = std::map<std::string, sys::Entry>;

std::string proc(int pid, std::string_view name) {
  return fmt::format("/proc/{}/{}", pid, name);
}

struct Scan {
  std::vector<ProcessFacts> processes;
  std::string own_namespace;
  std::map<std::string, std::pair<Holder, sys::MountTable>> other_namespaces; ///< by namespace
  std::set<std::string> gaps;
};

/// The answers by path; what hung is noted as a gap.
Answers ask(sys::System& system, Scan& scan, std::vector<sys::EntryQuery> queries, std::chrono::milliseconds deadline) {
  Answers answers;
  if (queries.empty())
    return answers;
  for (auto& entry : system.entries({std::move(queries), deadline})) {
    if (entry.hung())
      scan.gaps.insert(fmt::format("{}: {}", entry.path, entry.detail));
    answers.emplace(entry.path, std::move(entry));
  }
  return answers;
}

void scan_links(sys::System& system, Scan& scan, std::chrono::milliseconds deadline) {
  std::vector<sys::EntryQuery> queries{{.path = "/proc/self/ns/mnt"}};
  auto pids = process_ids(system, deadline);
  std::erase(pids, system.identity().pid);
  for (const int pid : pids) {
    queries.push_back({.path = proc(pid, "comm"), .read_bytes = k_comm_bytes});
    queries.push_back({.path = proc(pid, "wchan"), .read_bytes = k_comm_bytes});
    for (const auto* name : {"ns/mnt", "cwd", "root", "exe"})
      queries.push_back({.path = proc(pid, name)});
    queries.push_back({.path = proc(pid, "fd"), .list = true});
  }
  auto answers = ask(system, scan, std::move(queries), deadline);
  scan.own_namespace = answers["/proc/self/ns/mnt"].link_target;
  std::vector<sys::EntryQuery> descriptors;
  for (const int pid : pids) {
    ProcessFacts process;
    process.pid = pid;
    process.command = std::string(trim(answers[proc(pid, "comm")].content));
    process.waits_in = answers[proc(pid, "wchan")].content;
    process.mount_namespace = answers[proc(pid, "ns/mnt")].link_target;
    for (const auto* name : {"cwd", "root", "exe"})
      process.links.emplace_back(name, answers[proc(pid, name)].link_target);
    const auto& list = answers[proc(pid, "fd")];
    if (list.error_number == EACCES)
      scan.gaps.insert("processes of other users are visible to root only");
    for (const auto& number : list.names)
      descriptors.push_back({.path = proc(pid, "fd/" + number)});
    scan.processes.push_back(std::move(process));
  }
  const auto open_files = ask(system, scan, std::move(descriptors), deadline);
  for (auto& process : scan.processes) {
    const auto prefix = proc(process.pid, "fd/");
    for (auto at = open_files.lower_bound(prefix); at != open_files.end() && at->first.starts_with(prefix); ++at)
      process.links.emplace_back("fd " + at->first.substr(prefix.size()), at->second.link_target);
  }
}

/// Maps can only be read while the process' memory is not locked, so those of a hung one may be a gap.
void scan_maps(sys::System& system, Scan& scan, std::chrono::milliseconds deadline) {
  std::vector<sys::EntryQuery> queries;
  std::set<std::string> seen{scan.own_namespace, ""};
  for (const auto& process : scan.processes) {
    if (process.mount_namespace == scan.own_namespace)
      queries.push_back({.path = proc(process.pid, "maps"), .read_bytes = k_maps_bytes});
    if (seen.insert(process.mount_namespace).second)
      queries.push_back({.path = proc(process.pid, "mountinfo"), .read_bytes = k_mountinfo_bytes});
  }
  auto answers = ask(system, scan, std::move(queries), deadline);
  for (auto& process : scan.processes) {
    process.mapped = mapped_files(answers[proc(process.pid, "maps")].content);
    const auto& table = answers[proc(process.pid, "mountinfo")].content;
    if (auto parsed = sys::MountTable::parse(table); parsed && !table.empty())
      scan.other_namespaces.emplace(
          process.mount_namespace,
          std::pair{Holder{process.pid, process.command, {"another mount namespace"}}, std::move(*parsed)});
  }
}

} // namespace

std::vector<std::string> mapped_files(const std::string& maps) {
  std::set<std::string> files;
  for (const auto& line : split_lines(maps))
    if (const auto slash = line.find(" /"); slash != std::string::npos)
      files.insert(line.substr(slash + 1));
  return {files.begin(), files.end()};
}

std::vector<Holder> holders_of(const sys::MountEntry& mount, const std::vector<ProcessFacts>& processes,
                               const std::string& own_namespace) {
  std::vector<Holder> holders;
  for (const auto& process : processes) {
    if (process.mount_namespace != own_namespace)
      continue;
    Holder holder{process.pid, process.command, {}};
    for (const auto& [how, path] : process.links)
      if (path.starts_with('/') && is_under(path, mount.target))
        holder.uses.push_back(how + " " + path);
    for (const auto& file : process.mapped) {
      if (!is_under(file, mount.target))
        continue;
      holder.uses.push_back(fmt::format("mapped {}", file)); // one is enough: an environment maps hundreds
      break;
    }
    if (!holder.uses.empty())
      holders.push_back(std::move(holder));
  }
  return holders;
}

std::vector<Holder> waiting_processes(const std::vector<ProcessFacts>& processes, const std::string& own_namespace) {
  std::vector<Holder> waiting;
  for (const auto& process : processes) {
    const auto is_executable = [](const auto& link) { return link.first == "exe" && !link.second.empty(); };
    const bool kernel_thread = std::none_of(process.links.begin(), process.links.end(), is_executable);
    const bool waits = process.waits_in.starts_with("rpc_") || process.waits_in.starts_with("nfs");
    if (waits && !kernel_thread && process.mount_namespace == own_namespace)
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
  const auto waiting = waiting_processes(scan.processes, scan.own_namespace);
  for (const auto& mount : mounts) {
    HolderReport report;
    report.holders = holders_of(mount, scan.processes, scan.own_namespace);
    report.waiting = waiting;
    std::erase_if(report.waiting, [&](const Holder& one) {
      return std::ranges::find(report.holders, one.pid, &Holder::pid) != report.holders.end();
    });
    report.gaps = {scan.gaps.begin(), scan.gaps.end()};
    for (const auto& [name, other] : scan.other_namespaces) {
      const auto is_its = [&](const sys::MountEntry& entry) {
        return entry.major == mount.major && entry.minor == mount.minor;
      };
      if (std::ranges::any_of(other.second.entries(), is_its))
        report.namespaces.push_back(other.first);
    }
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

} // namespace sharefs::mounts
