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
constexpr int k_retries = 3;

/// inspect() that gives up a path on which it hangs, up to k_retries times, and says so in `gaps`.
std::map<std::string, sys::PathFact> inspect_all(sys::System& system, std::vector<sys::PathQuery> queries,
                                                 std::chrono::milliseconds deadline, std::vector<std::string>& gaps) {
  std::map<std::string, sys::PathFact> facts;
  for (int attempt = 0; attempt < k_retries && !queries.empty(); ++attempt) {
    auto answers = system.inspect({queries, deadline, std::nullopt});
    if (answers) {
      for (auto& fact : *answers)
        facts.emplace(fact.path, fact);
      return facts;
    }
    gaps.push_back(answers.error().message);
    const auto count = queries.size();
    std::erase_if(queries, [&](const sys::PathQuery& query) {
      return answers.error().message.find(query.path) != std::string::npos;
    });
    if (queries.size() == count)
      return facts;
  }
  return facts;
}

const sys::PathFact& fact_at(const std::map<std::string, sys::PathFact>& facts, const std::string& path) {
  static const sys::PathFact k_none;
  const auto found = facts.find(path);
  return found == facts.end() ? k_none : found->second;
}

std::string proc(int pid, std::string_view name) {
  return fmt::format("/proc/{}/{}", pid, name);
}

/// The file of a line of /proc/PID/maps (its sixth column), or "".
std::string_view mapped_file(std::string_view line) {
  const auto slash = line.find(" /");
  return slash == std::string_view::npos ? std::string_view() : line.substr(slash + 1);
}

struct Scan {
  std::vector<ProcessFacts> processes;
  std::string own_namespace;
  std::map<std::string, std::pair<ProcessFacts, sys::MountTable>> other_namespaces; ///< by namespace
  std::vector<std::string> gaps;
  bool complete = true; ///< false: other users' processes are closed to us
};

void scan_links(sys::System& system, Scan& scan, const std::vector<int>& pids, std::chrono::milliseconds deadline) {
  std::vector<sys::PathQuery> queries{{.path = "/proc/self/ns/mnt"}};
  for (const int pid : pids) {
    queries.push_back({.path = proc(pid, "comm"), .read_bytes = k_comm_bytes});
    queries.push_back({.path = proc(pid, "wchan"), .read_bytes = k_comm_bytes});
    for (const auto* name : {"ns/mnt", "cwd", "root", "exe"})
      queries.push_back({.path = proc(pid, name)});
    queries.push_back({.path = proc(pid, "fd"), .list = true});
  }
  const auto facts = inspect_all(system, std::move(queries), deadline, scan.gaps);
  scan.own_namespace = fact_at(facts, "/proc/self/ns/mnt").link_target;
  std::vector<sys::PathQuery> descriptors;
  for (const int pid : pids) {
    ProcessFacts process;
    process.pid = pid;
    process.command = std::string(trim(fact_at(facts, proc(pid, "comm")).content));
    process.waits_in = fact_at(facts, proc(pid, "wchan")).content;
    process.mount_namespace = fact_at(facts, proc(pid, "ns/mnt")).link_target;
    for (const auto* name : {"cwd", "root", "exe"})
      process.links.emplace_back(name, fact_at(facts, proc(pid, name)).link_target);
    const auto& list = fact_at(facts, proc(pid, "fd"));
    scan.complete = scan.complete && list.error_number != EACCES;
    for (const auto& number : list.entries)
      descriptors.push_back({.path = proc(pid, "fd/" + number)});
    scan.processes.push_back(std::move(process));
  }
  const auto open_files = inspect_all(system, std::move(descriptors), deadline, scan.gaps);
  for (auto& process : scan.processes) {
    const auto prefix = proc(process.pid, "fd/");
    for (auto at = open_files.lower_bound(prefix); at != open_files.end() && at->first.starts_with(prefix); ++at)
      process.links.emplace_back("fd " + at->first.substr(prefix.size()), at->second.link_target);
  }
}

/// Maps can only be read while the process' memory is not locked, so a hung one may be skipped.
void scan_maps(sys::System& system, Scan& scan, std::chrono::milliseconds deadline) {
  std::vector<sys::PathQuery> queries;
  std::set<std::string> seen{scan.own_namespace, ""};
  for (const auto& process : scan.processes) {
    queries.push_back({.path = proc(process.pid, "maps"), .read_bytes = k_maps_bytes});
    if (seen.insert(process.mount_namespace).second)
      queries.push_back({.path = proc(process.pid, "mountinfo"), .read_bytes = k_mountinfo_bytes});
  }
  const auto facts = inspect_all(system, std::move(queries), deadline, scan.gaps);
  for (auto& process : scan.processes) {
    process.maps = fact_at(facts, proc(process.pid, "maps")).content;
    const auto& table = fact_at(facts, proc(process.pid, "mountinfo")).content;
    if (table.empty())
      continue;
    if (auto parsed = sys::MountTable::parse(table))
      scan.other_namespaces.emplace(process.mount_namespace, std::pair{process, std::move(*parsed)});
  }
}

} // namespace

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
    for (const auto& line : split_lines(process.maps)) {
      const auto file = mapped_file(line);
      if (file.empty() || !is_under(file, mount.target))
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

bool shares_superblock(const sys::MountEntry& mount, const sys::MountTable& other) {
  return std::any_of(other.entries().begin(), other.entries().end(), [&](const sys::MountEntry& entry) {
    return entry.major == mount.major && entry.minor == mount.minor;
  });
}

std::map<std::string, HolderReport> find_holders(sys::System& system, const std::vector<sys::MountEntry>& mounts,
                                                 std::chrono::milliseconds deadline) {
  std::map<std::string, HolderReport> reports;
  Scan scan;
  const auto names = inspect_all(system, {{.path = "/proc", .list = true}}, deadline, scan.gaps);
  const auto pids = process_ids(fact_at(names, "/proc").entries);
  scan_links(system, scan, pids, deadline);
  scan_maps(system, scan, deadline);
  if (!scan.complete)
    scan.gaps.emplace_back("processes of other users are visible to root only");
  for (const auto& mount : mounts) {
    HolderReport report;
    report.holders = holders_of(mount, scan.processes, scan.own_namespace);
    report.waiting = waiting_processes(scan.processes, scan.own_namespace);
    std::erase_if(report.waiting, [&](const Holder& one) {
      return std::any_of(report.holders.begin(), report.holders.end(),
                         [&](const Holder& holder) { return holder.pid == one.pid; });
    });
    report.gaps = scan.gaps;
    for (const auto& [name, other] : scan.other_namespaces)
      if (shares_superblock(mount, other.second))
        report.namespaces.push_back({other.first.pid, other.first.command, {"another mount namespace"}});
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
