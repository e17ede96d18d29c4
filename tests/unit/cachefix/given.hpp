#pragma once
// Facts for tests: a mount table in short form, links and files, and the loop of decide() over them. No machine.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/sanitize.hpp"
#include "sys/process/process.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace sharefs::test {

using namespace cachefix;

/// The real parser: a child process of 3 ms.
inline std::optional<std::string> parse_shell(const std::string& text) {
  sys::Command command;
  command.argv = {"shfmt", "--tojson", "-ln", "bash"};
  command.user_path = true;
  command.input = text;
  command.output_limit = 32U << 20U;
  const auto done = sys::run_process(command);
  return done && done->ok() ? std::optional<std::string>(done->out) : std::nullopt;
}

struct World {
  std::vector<std::pair<std::string, std::string>> mounts = {{"/", "ext4"}, {"/share", "nfs4"}}; ///< target, type
  std::vector<std::string> environment = {"HOME=/home/alice"};
  std::string directory = "/job";
  std::map<std::string, std::string> links;                    ///< path -> target
  std::map<std::string, std::string> files;                    ///< path -> content
  std::map<std::string, std::vector<std::string>> directories; ///< path -> names
  LocalRoot local{"/var/cache/sharefs/alice", "", ""};
  bool has_parser = true;

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
    entry.shared = mount != nullptr && sys::is_shared_fs_type(mount->fs_type);
    return entry;
  }

  void answer(const Questions& questions, Facts& facts) const {
    const sys::MountTable mount_table = table();
    for (const std::string& path : questions.places)
      facts.places[path] = entry(path, mount_table);
    for (const std::string& path : questions.texts) {
      const auto file = files.find(resolved(path));
      facts.texts[path] = file == files.end() ? std::nullopt : std::optional<std::string>(file->second);
    }
    for (const std::string& path : questions.listings) {
      const auto known = directories.find(resolved(path));
      facts.listings[path] = known == directories.end() ? std::vector<std::string>{} : known->second;
    }
    for (const std::string& text : questions.trees)
      facts.trees[text] = has_parser ? parse_shell(text) : std::nullopt;
    for (const std::string& path : questions.leftovers) {
      facts.leftovers[path] = {};
      for (const auto& [known, names] : directories)
        if (is_under(known, path) && known.ends_with(".incomplete"))
          facts.leftovers[path].push_back(known);
    }
    facts.any_shared = std::any_of(mounts.begin(), mounts.end(),
                                   [](const auto& mount) { return sys::is_shared_fs_type(mount.second); });
    if (questions.local)
      facts.local = local;
  }

  [[nodiscard]] Facts first() const {
    Facts facts;
    facts.environment = environment;
    facts.directory = directory;
    facts.home = "/home/alice";
    return facts;
  }

  [[nodiscard]] Sanitized run(const Argv& argv, const Rules& rules = {}) const {
    Facts facts = first();
    Sanitized result = sanitize(argv, facts, rules);
    for (int round = 0; round < 32 && !result.questions.empty(); ++round) {
      answer(result.questions, facts);
      result = sanitize(argv, facts, rules);
    }
    return result;
  }
};

/// The node-local directory of a shared path in World.
inline std::string local_of(const std::string& shared) {
  return "/var/cache/sharefs/alice/" + cache_key(shared);
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
