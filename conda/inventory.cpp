#include "conda/inventory.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "conda/guard_wheel.hpp"
#include "conda/homes.hpp"
#include "conda/noted_processes.hpp"
#include "conda/running.hpp"
#include "conda/verified.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

using sys::Entry;
using sys::EntryKind;

constexpr int k_ancestors = 64;
constexpr std::size_t k_most_environments = 1000;

Availability availability_of(const Entry& entry) {
  return entry.hung() ? Availability::no_answer : Availability::unreadable;
}

/// Returns the version of Python by the names in conda-meta.
std::string python_of(const std::vector<std::string>& records) {
  for (const auto& name : records)
    if (const auto package = package_of_record(name); package && package->name == "python")
      return package->version;
  return {};
}

Diagnosis unpinned_programs(const ListedEnvironment& row, std::size_t count) {
  return {Severity::warning,
          "SF320",
          row.path,
          "an update would change what is imported by " + count_of(count, "program") +
              " of it that `sharefs conda run` did not start",
          "start them with `sharefs conda run " + shell_quote(row.name) + " -- CMD`",
          ""};
}

class InventoryReader {
 public:
  InventoryReader(sys::System& system, const LinkRequest& request, sys::MountTable mounts)
      : m_system(system), m_request(request), m_mounts(std::move(mounts)),
        m_only(request.environments.empty() ? "" : request.environments.front()) {}

  Inventory read() {
    read_store();
    read_homes();
    m_inventory.store = m_request.store;
    m_inventory.problems = m_inventory.found.size();
    for (const auto& row : m_inventory.environments)
      if (const auto unpinned = std::ranges::count(row.jobs, false, &Job::pinned); unpinned > 0)
        m_inventory.found.push_back(unpinned_programs(row, static_cast<std::size_t>(unpinned)));
    return std::move(m_inventory);
  }

 private:
  /// Reads entries of the store, as the user who may read it.
  std::vector<Entry> stored(std::vector<sys::EntryQuery> queries) {
    return m_system.entries({.queries = std::move(queries), .as = m_inventory.by});
  }

  ListedEnvironment& add(std::string name, std::string path, Availability availability, std::string detail = {}) {
    auto& row = m_inventory.environments.emplace_back();
    row.name = std::move(name);
    row.path = std::move(path);
    set_problem(row, availability, std::move(detail));
    return row;
  }

  void read_store() {
    const auto& store = m_request.store;
    if (const auto* share = unmounted_share(store, m_request.shares, m_mounts)) {
      add(m_only, store, Availability::unmounted, "share `" + share->name + "` is not mounted");
      return;
    }
    auto seen =
        read_as_permitted(m_system, {.queries = {{.path = store, .follow = true, .list = true, .automount = true}}},
                          conda::users_of(m_request.homes));
    m_store = std::move(seen.entries.front());
    m_inventory.by = std::move(seen.by);
    m_inventory.denied = is_denied(m_store) && m_system.identity().uid == 0;
    if (m_store.kind == EntryKind::unknown) {
      add(m_only, store, availability_of(m_store), reason_of(m_store));
      return;
    }
    if (m_store.kind != EntryKind::directory) {
      add(m_only, store, Availability::missing, "there is no store");
      return;
    }
    if (m_store.error_number != 0 && m_only.empty())
      add("", store, availability_of(m_store), "not all that it holds is known: " + reason_of(m_store));
    m_programs = running_programs(m_system);
    const auto made = stored({{.path = generations_path(store, ""), .follow = true, .list = true}}).front();
    std::set<std::string> names(m_store.names.begin(), m_store.names.end());
    names.insert(made.names.begin(), made.names.end()); // also environments whose link somebody has removed
    if (m_store.error_number != 0 && !m_only.empty())
      names.insert(m_only); // a name can be asked for where the directory may not be listed
    std::erase_if(
        names, [&](const std::string& name) { return name.starts_with('.') || (!m_only.empty() && name != m_only); });
    std::size_t read = 0;
    for (const auto& name : names)
      if (++read > k_most_environments) { // in a store that is open to all anybody may have made them
        add("", store, Availability::unreadable,
            fmt::format("holds {} names: only the first {} were looked at", names.size(), k_most_environments));
        return;
      } else if (!read_shared(name)) {
        return;
      }
  }

  /// Reads one environment. Returns false if the store hangs, so that nothing more is asked of it.
  bool read_shared(const std::string& name) {
    auto shared = probe_environment(m_system, m_request.store, name, m_inventory.by);
    const auto path = join_path(m_request.store, name);
    if (!shared) {
      const bool hangs = shared.error().code == ErrorCode::timeout;
      add(name, path, hangs ? Availability::no_answer : Availability::unreadable, shared.error().message);
      return !hangs;
    }
    if (shared->entry.kind == EntryKind::missing && !shared->lost_its_name())
      return true; // an interrupted `share` has left it
    const auto entries =
        stored({{.path = path, .follow = true}, {.path = join_path(path, "conda-meta"), .follow = true, .list = true}});
    const auto& whole = entries[0];
    const auto& meta = entries[1];
    if (whole.kind != EntryKind::directory && whole.kind != EntryKind::missing && whole.kind != EntryKind::unknown)
      return true; // it is a file in the store
    auto& row = add(name, path, Availability::good);
    row.generation = shared->current;
    row.generations = shared->generations.size();
    row.holder = shared->holder;
    row.python = python_of(meta.names);
    row.is_protected = std::ranges::binary_search(meta.names, "frozen") ||
                       (whole.kind == EntryKind::directory && (whole.mode & 0222U) == 0);
    if (whole.kind == EntryKind::unknown)
      set_problem(row, availability_of(whole), reason_of(whole));
    else if (shared->lost_its_name())
      set_problem(row, Availability::missing, "is gone; `sharefs conda rollback " + name + "` brings it back");
    else if (whole.kind == EntryKind::missing)
      set_problem(row, Availability::missing, "leads to " + shared->entry.link_target + ", which is not there");
    else if (meta.kind != EntryKind::directory)
      set_problem(row, Availability::incomplete, "has no conda-meta");
    if (const auto* generation = shared->find(shared->current)) {
      if (generation->image.exists())
        row.image_bytes = generation->image.size;
      if (generation->record) {
        row.bytes = generation->record->bytes;
        row.files = generation->record->files;
        row.has_guard = has_guard(generation->record->packages);
        row.verified = parse_verified(shared->verified, *generation->record).at;
      } else if (row.availability == Availability::good) {
        set_problem(row, Availability::incomplete,
                    "generation " + generation_name(shared->current) + " " + generation->problem);
      }
    }
    row.jobs = jobs_of(*shared);
    return true;
  }

  static void set_problem(ListedEnvironment& row, Availability availability, std::string detail) {
    row.availability = availability;
    row.detail = std::move(detail);
  }

  std::vector<Job> jobs_of(const SharedEnvironment& shared) {
    std::vector<Job> jobs;
    const auto host = m_system.identity().process_host();
    const auto oldest = std::chrono::system_clock::to_time_t(m_system.now() - std::chrono::hours(24 * k_note_days));
    NotedProcesses processes(m_system);
    std::set<int> noted;
    for (const auto& use : shared.uses) {
      const auto pid = processes.find(use);
      if (pid)
        noted.insert(*pid);
      if (pid || use.noted > oldest)
        jobs.push_back({use.host, use.pid, use.generation, true, pid ? std::optional(*pid != 0) : std::nullopt});
    }
    const auto is_noted = [&](int pid) { return noted.contains(pid); };
    for (const auto& program : programs_of(m_system, m_programs, shared.name, shared.root)) {
      int pid = program.pid; // a program that a command of `conda run` has started is pinned with that command
      for (int above = 0; pid > 1 && !is_noted(pid) && above < k_ancestors; ++above)
        pid = sys::process_parent(m_system.files(), pid);
      if (pid <= 1 || !is_noted(pid))
        jobs.push_back({host, program.pid, program.in.number, false, true});
    }
    return jobs;
  }

  /// Finds the users whose homes have a link to an environment.
  void read_homes() {
    auto request = m_request;
    request.verb = LinkRequest::Verb::unlink;
    request.environments.clear();
    for (const auto& row : m_inventory.environments)
      if (!row.name.empty())
        request.environments.push_back(row.name);
    if (request.environments.empty())
      return;
    const auto state = probe(m_system, request);
    if (!state)
      return;
    for (const auto& home : state->homes) {
      if (home.problem == HomeProblem::no_answer || home.problem == HomeProblem::unreadable ||
          home.problem == HomeProblem::unknown_user)
        std::ranges::move(diagnose_problem(home, request.verb), std::back_inserter(m_inventory.found));
      if (home.problem == HomeProblem::none)
        note_links(home);
    }
  }

  void note_links(const HomeState& home) {
    const auto is_linked = [&](const Place& place) { return state_of(place, m_request.store) == PlaceState::linked; };
    const auto users = users_of(home);
    for (auto& row : m_inventory.environments) {
      const auto place = std::ranges::find(home.environments, row.name, &Place::environment);
      if (!row.name.empty() && (is_linked(home.envs) || (place != home.environments.end() && is_linked(*place))))
        row.linked_by.insert(row.linked_by.end(), users.begin(), users.end());
    }
  }

  /// Returns the users who have conda there. The name of an installation for the whole host is its path.
  [[nodiscard]] std::vector<std::string> users_of(const HomeState& home) const {
    if (!home.name.starts_with('/'))
      return {home.name};
    const auto place = std::ranges::find(m_request.homes, home.conda, &Homes::conda);
    return place == m_request.homes.end() ? std::vector<std::string>{} : place->users;
  }

  sys::System& m_system;
  const LinkRequest& m_request;
  sys::MountTable m_mounts;
  std::string m_only; ///< an environment's name; empty: all
  Entry m_store;
  std::vector<RunningProgram> m_programs;
  Inventory m_inventory;
};

} // namespace

const char* to_string(Availability availability) {
  constexpr std::array<const char*, 6> k_names{"good",      "not mounted", "missing",
                                               "no answer", "unreadable",  "incomplete"}; // in the order of the enum
  return name_in(k_names, availability);
}

Result<Inventory> probe_inventory(sys::System& system, const LinkRequest& request) {
  TRY_ASSIGN(auto mounts, system.mounts());
  return InventoryReader(system, request, std::move(mounts)).read();
}

} // namespace sharefs::conda
