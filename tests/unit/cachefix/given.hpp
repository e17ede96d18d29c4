#pragma once
// A machine for tests: a mount table in short form, links and files.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/run_plan.hpp"
#include "support/scripted_system.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sharefs::test {

using namespace cachefix;

struct World {
  std::vector<std::pair<std::string, std::string>> mounts = {{"/", "ext4"}, {"/share", "nfs4"}}; ///< target, type
  std::vector<std::string> environment = {"HOME=/home/alice"};
  std::string directory = "/job";
  std::string input = {};                                      ///< path of the file that is stdin
  std::map<std::string, std::string> links;                    ///< path -> target
  std::map<std::string, std::string> files;                    ///< path -> content
  std::map<std::string, std::vector<std::string>> directories; ///< path -> names
  std::map<std::string, int> unreadable;                       ///< path -> errno of a look at its names
  LocalRoot local{"/var/cache/sharefs/alice", "", ""};
  std::set<std::string> read_only; ///< directories where this user may not write
  bool excludes = true;            ///< do file locks of the share exclude other hosts?

  [[nodiscard]] sys::MountTable table() const {
    std::vector<sys::MountEntry> entries;
    int id = 1;
    for (const auto& [target, type] : mounts) {
      sys::MountEntry entry;
      entry.id = id;
      entry.parent = 0;
      std::size_t longest = 0;
      for (const sys::MountEntry& above : entries)
        if (is_under(target, above.target) && above.target.size() > longest) {
          entry.parent = above.id;
          longest = above.target.size();
        }
      entry.target = target;
      entry.fs_type = type;
      if (!excludes && sys::is_shared(type, {})) {
        entry.fs_type = "nfs";
        entry.super_options = "rw,vers=3,nolock";
      }
      entries.push_back(entry);
      ++id;
    }
    return sys::MountTable(std::move(entries));
  }

  /// Through links and `..`, as the kernel would.
  [[nodiscard]] std::string resolved(const std::string& path, int depth = 0) const {
    std::string at = "/";
    for (const std::string& name : split(path, '/')) {
      if (name.empty() || name == ".")
        continue;
      at = name == ".." ? parent_path(at) : join_path(at, name);
      if (const auto link = links.find(at); link != links.end() && depth < 40)
        at = resolved(join_path(parent_path(at), link->second), depth + 1);
    }
    return at;
  }

  [[nodiscard]] sys::EntryKind kind_of(const std::string& path) const {
    if (files.contains(path))
      return sys::EntryKind::file;
    const auto is_above = [&path](const auto& known) { return is_under(known.first, path); };
    const auto has_some = [&](const auto& all) { return std::any_of(all.begin(), all.end(), is_above); };
    return has_some(directories) || has_some(files) || has_some(links) || has_some(mounts) ? sys::EntryKind::directory
                                                                                           : sys::EntryKind::missing;
  }

  [[nodiscard]] sys::Entry entry(const std::string& path, const sys::MountTable& mount_table) const {
    sys::Entry entry;
    entry.path = path;
    entry.resolved = resolved(path);
    entry.kind = kind_of(entry.resolved);
    const sys::MountEntry* mount = mount_table.owner_of(entry.resolved);
    entry.shared = mount != nullptr && sys::is_shared(mount->fs_type, {});
    entry.writable = !read_only.contains(entry.resolved);
    return entry;
  }

  [[nodiscard]] sys::Entry answer(const sys::EntryQuery& query, const sys::MountTable& mount_table) const {
    sys::Entry found = entry(query.path, mount_table);
    const auto file = files.find(found.resolved);
    if (query.read_bytes > 0 && file != files.end()) {
      found.content = file->second;
      found.size = file->second.size();
    }
    if (query.list)
      found.names = names_in(found.resolved);
    if (const auto error = unreadable.find(query.path); query.list && error != unreadable.end()) {
      found.kind = sys::EntryKind::unknown;
      found.error_number = error->second;
    }
    return found;
  }

  [[nodiscard]] std::vector<std::string> names_in(const std::string& path) const {
    const auto known = directories.find(path);
    if (known != directories.end())
      return known->second;
    std::set<std::string> names; // on the way to directories that are known
    for (const auto& [below, inside] : directories)
      if (below != path && is_under(below, path))
        names.insert(split(std::string_view(below).substr(path.size() + 1), '/').front());
    return {names.begin(), names.end()};
  }

  [[nodiscard]] Start first() const {
    Start start{{}, directory, "/home/alice", input};
    for (const std::string& entry : environment)
      start.environment.emplace(entry.substr(0, entry.find('=')), entry.substr(entry.find('=') + 1));
    return start;
  }
  [[nodiscard]] RunPlan run(const Argv& argv, const Rules& rules = {}) const;
};

inline RunPlan World::run(const Argv& argv, const Rules& rules) const {
  ScriptedSystem system;
  system.machine.mounts = table();
  system.machine.on_entry = [this, table = table()](const sys::EntryQuery& query, const auto&) {
    return std::optional(answer(query, table));
  };
  Facts facts(system, [this] { return local; });
  return plan_run(argv, first(), facts, rules);
}

/// sharefs is installed on all nodes, with its guard.
inline Rules installed() {
  Rules rules;
  rules.node = {"sharefs", "run", "--node", "--"};
  rules.guard = Guard{"/usr/share/sharefs/guard"};
  return rules;
}

/// The node-local directory of a shared path in World.
inline std::string local_of(const std::string& shared) {
  return "/var/cache/sharefs/alice/" + cache_key(shared);
}

/// The environment on the only node of a Slurm job.
inline std::vector<std::string> on_the_only_node() {
  return {"HOME=/home/alice", "SLURM_JOB_NUM_NODES=1", "SLURMD_NODENAME=here"};
}

/// The codes of all diagnoses, separated by spaces.
inline std::string codes(const RunPlan& result) {
  std::vector<std::string> all;
  for (const Diagnosis& one : result.diagnoses)
    all.push_back(one.code);
  return join(all, " ");
}

/// Words separated by spaces, for short tables.
inline Argv words(const std::string& line) {
  Argv argv;
  std::string word;
  for (const char c : line + " ") {
    if (c != ' ')
      word += c;
    else if (!word.empty())
      argv.push_back(std::exchange(word, {}));
  }
  return argv;
}

} // namespace sharefs::test
