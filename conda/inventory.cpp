#include "conda/inventory.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "conda/backup_name.hpp"
#include "conda/homes.hpp"
#include "conda/installations.hpp"
#include "conda/running.hpp"
#include "conda/verified.hpp"
#include "sys/process/stat_field.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
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

/// Of the names of conda-meta.
std::string python_of(const std::vector<std::string>& records) {
  for (const auto& name : records)
    if (const auto package = package_of_record(name); package && package->name == "python")
      return package->version;
  return {};
}

int parent_of(sys::System& system, int pid) {
  const auto text = system.files().read("/proc/" + std::to_string(pid) + "/stat", 4096);
  return static_cast<int>(sys::stat_field(text.value_or(""), sys::k_stat_parent).value_or(0));
}

class InventoryReader {
 public:
  InventoryReader(sys::System& system, const InventoryRequest& request, sys::MountTable mounts)
      : m_system(system), m_request(request), m_mounts(std::move(mounts)) {}

  Inventory read() {
    if (!m_request.store.empty())
      read_store();
    read_homes();
    return std::move(m_inventory);
  }

 private:
  /// The share of the path that is not mounted.
  [[nodiscard]] const Share* unmounted(const std::string& path) const {
    const auto* share = share_of(path, m_request.shares);
    return share != nullptr && !share->served_here && m_mounts.at(share->at) == nullptr ? share : nullptr;
  }

  /// What lies in the store, as whoever may read it.
  std::vector<Entry> stored(std::vector<sys::EntryQuery> queries) {
    return m_system.entries({.queries = std::move(queries), .as = m_inventory.by});
  }

  ListedEnvironment& add(std::string name, std::string path, Availability availability, std::string detail = {}) {
    m_inventory.environments.push_back({.name = std::move(name),
                                        .user = {},
                                        .path = std::move(path),
                                        .availability = availability,
                                        .detail = std::move(detail),
                                        .bytes = {},
                                        .files = {},
                                        .python = {},
                                        .holder = {},
                                        .linked_by = {},
                                        .jobs = {}});
    return m_inventory.environments.back();
  }

  void read_store() {
    const auto& store = m_request.store;
    if (const auto* share = unmounted(store)) {
      add(m_request.only, store, Availability::unmounted, "share `" + share->name + "` is not mounted");
      return;
    }
    std::vector<std::string> users;
    for (const auto& user : m_request.users)
      users.push_back(user.name);
    auto seen = see(m_system, {.queries = {{.path = store, .follow = true, .list = true, .automount = true}}}, users);
    m_store = std::move(seen.entries.front());
    m_inventory.by = std::move(seen.by);
    m_inventory.denied = is_denied(m_store) && m_system.identity().uid == 0;
    if (m_store.kind == EntryKind::unknown) {
      add(m_request.only, store, availability_of(m_store), reason_of(m_store));
      return;
    }
    if (m_store.kind != EntryKind::directory) {
      add(m_request.only, store, Availability::missing, "there is no store");
      return;
    }
    m_programs = running_programs(m_system);
    const auto made = stored({{.path = generations_path(store, ""), .follow = true, .list = true}}).front();
    std::set<std::string> names(m_store.names.begin(), m_store.names.end());
    names.insert(made.names.begin(), made.names.end()); // also those whose link somebody has removed
    std::erase_if(names, [&](const std::string& name) {
      return name.starts_with('.') || (!m_request.only.empty() && name != m_request.only);
    });
    std::size_t looked_at = 0;
    for (const auto& name : names)
      if (++looked_at > k_most_environments) { // anybody may have made them, where a store is open to all
        add("", store, Availability::unreadable,
            fmt::format("holds {} names: only the first {} were looked at", names.size(), k_most_environments));
        return;
      } else if (!read_shared(name)) {
        return;
      }
  }

  /// False: the store hangs, and nothing more is asked of it.
  bool read_shared(const std::string& name) {
    auto shared = probe_environment(m_system, m_request.store, name, m_inventory.by);
    const auto path = join_path(m_request.store, name);
    if (!shared) {
      const bool hangs = shared.error().code == ErrorCode::timeout;
      add(name, path, hangs ? Availability::no_answer : Availability::unreadable, shared.error().message);
      return !hangs;
    }
    if (shared->entry.kind == EntryKind::missing && !shared->lost_its_name())
      return true; // what a `share` that was cut off has left
    const auto entries = stored({{.path = path, .follow = true},
                                 {.path = join_path(path, "conda-meta"), .follow = true, .list = true},
                                 {.path = verified_path(m_request.store, name), .read_bytes = k_largest_note}});
    const auto& whole = entries[0];
    const auto& meta = entries[1];
    if (whole.kind != EntryKind::directory && whole.kind != EntryKind::missing && whole.kind != EntryKind::unknown)
      return true; // a file in the store
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
      if (generation->record) {
        row.bytes = generation->record->bytes;
        row.files = generation->record->files;
        row.verified = verified_at(entries[2].content, *generation->record);
      } else if (row.availability == Availability::good) {
        set_problem(row, Availability::incomplete,
                    "generation " + generation_name(shared->current) + " " + generation->problem);
      }
    }
    row.jobs = jobs_of(*shared);
    std::ranges::copy_if(shared->uses, std::back_inserter(row.ended),
                         [&](const Use& use) { return runs(m_system, use) == false; });
    return true;
  }

  static void set_problem(ListedEnvironment& row, Availability availability, std::string detail) {
    row.availability = availability;
    row.detail = std::move(detail);
  }

  std::vector<Job> jobs_of(const SharedEnvironment& shared) {
    std::vector<Job> jobs;
    const auto host = m_system.identity().hostname;
    const auto oldest = std::chrono::system_clock::to_time_t(m_system.now() - std::chrono::hours(24 * k_note_days));
    std::set<int> noted;
    for (const auto& use : shared.uses) {
      if (use.host == host)
        noted.insert(use.pid);
      if (const auto running = runs(m_system, use); running || use.noted > oldest)
        jobs.push_back({use.host, use.pid, use.generation, true, running});
    }
    const auto is_noted = [&](int pid) { return noted.contains(pid); };
    for (const auto& program : m_programs) {
      if (program.in.name != shared.name || program.in.store != m_store.resolved)
        continue;
      int pid = program.pid; // what a command of `conda run` has started is pinned with it
      for (int above = 0; pid > 1 && !is_noted(pid) && above < k_ancestors; ++above)
        pid = parent_of(m_system, pid);
      if (pid <= 1 || !is_noted(pid))
        jobs.push_back({host, program.pid, program.in.number, false, true});
    }
    return jobs;
  }

  void read_homes() {
    if (m_request.users.empty())
      return;
    auto installations = find_installations(m_system, m_request.users, m_request.homes);
    std::ranges::move(installations.problems, std::back_inserter(m_inventory.found));
    for (const auto& [user, path] : installations.directories)
      if (path == m_request.store && !user.empty())
        link_all({user});
    HomeReader reader(m_system, m_mounts);
    for (const auto& installation : installations.found) {
      const auto users = users_of(installation);
      const auto user =
          users.empty() ? m_request.users.end() : std::ranges::find(m_request.users, users.front(), &sys::User::name);
      const auto envs = join_path(installation.path, "envs");
      if (installation.envs_is_link && leads_to(installation.envs_link, installation.path) == m_request.store) {
        link_all(users);
        continue;
      }
      add_environments(reader, user == m_request.users.end() ? nullptr : &*user, installation);
      for (const auto& link : installation.links)
        if ((m_request.only.empty() || link.name == m_request.only) && user != m_request.users.end())
          read_link(reader, *user, users, join_path(envs, link.name), link);
    }
  }

  /// Directories of the installation. Their sizes would have to be counted.
  void add_environments(HomeReader& reader, const sys::User* user, const Installation& installation) {
    std::vector<std::string> paths;
    std::vector<sys::EntryQuery> queries;
    for (const auto& name : installation.environments)
      if (m_request.only.empty() || name == m_request.only) {
        paths.push_back(join_path(join_path(installation.path, "envs"), name));
        queries.push_back({.path = join_path(paths.back(), "conda-meta"), .list = true, .links = sys::Links::none});
      }
    if (paths.empty())
      return;
    const bool theirs = user != nullptr && !installation.user.empty();
    const auto meta = theirs ? reader.read(*user, queries) : m_system.entries({.queries = queries});
    for (std::size_t index = 0; index < paths.size(); ++index) {
      const auto name = base_name(paths[index]);
      auto& row = add(name, paths[index], Availability::good,
                      is_backup(name) ? "kept by sharefs from before its link (`conda purge`, `conda unlink`)" : "");
      row.user = installation.user;
      row.python = python_of(meta[index].names);
    }
  }

  static std::string leads_to(const std::string& text, const std::string& above) { return normalize_path(text, above); }

  /// Every environment of the store: one link for all, or a .condarc that names the store.
  void link_all(const std::vector<std::string>& users) {
    for (auto& row : m_inventory.environments)
      if (row.user.empty() && !row.name.empty())
        row.linked_by.insert(row.linked_by.end(), users.begin(), users.end());
  }

  /// Of one for all of them: those who have conda there.
  [[nodiscard]] std::vector<std::string> users_of(const Installation& installation) const {
    if (!installation.user.empty())
      return {installation.user};
    const auto place = std::ranges::find(m_request.homes, installation.path, &Homes::conda);
    return place == m_request.homes.end() ? std::vector<std::string>{} : place->users;
  }

  void read_link(HomeReader& reader, const sys::User& user, const std::vector<std::string>& users,
                 const std::string& path, const EnvironmentLink& link) {
    const auto target = leads_to(link.target, parent_path(path));
    const auto row = std::ranges::find_if(m_inventory.environments, [&](const ListedEnvironment& one) {
      return one.user.empty() && !one.name.empty() && one.path == target;
    });
    if (row != m_inventory.environments.end()) {
      row->linked_by.insert(row->linked_by.end(), users.begin(), users.end());
      return;
    }
    if (const auto* share = unmounted(target)) {
      add(link.name, path, Availability::unmounted, "share `" + share->name + "` is not mounted").user = user.name;
      return;
    }
    const auto entry = reader.read(user, {{.path = target, .follow = true}}).front();
    if (entry.kind == EntryKind::missing)
      add(link.name, path, Availability::missing, "leads to " + link.target + ", which is not there").user = user.name;
    else if (entry.kind == EntryKind::unknown)
      add(link.name, path, availability_of(entry), reason_of(entry)).user = user.name;
    else
      add(link.name, path, Availability::good, "link to " + link.target).user = user.name;
  }

  sys::System& m_system;
  const InventoryRequest& m_request;
  sys::MountTable m_mounts;
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

Result<Inventory> probe_inventory(sys::System& system, const InventoryRequest& request) {
  auto mounts = system.mounts();
  if (!mounts)
    return fail(mounts.error());
  return InventoryReader(system, request, std::move(*mounts)).read();
}

} // namespace sharefs::conda
