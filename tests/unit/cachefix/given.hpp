#pragma once
// Facts for tests: a mount table in short form, links and files, and the loop of decide() over them. No machine.
#include "base/path.hpp"
#include "cachefix/sanitize.hpp"
#include "sys/process/process.hpp"

#include <map>
#include <string>
#include <vector>

namespace sharefs::test {

using namespace cachefix;

/// The real parser: a child process of 3 ms.
inline std::optional<std::string> parse_shell(const std::string& text) {
  sys::Command command;
  command.argv = {"shfmt", "--tojson", "-ln", "bash"};
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
  LocalRoot local{"/var/cache/sharefs/alice", false, ""};
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

  [[nodiscard]] sys::Seen look(const std::string& path) const {
    if (const auto link = links.find(path); link != links.end())
      return {sys::PathKind::symlink, link->second};
    if (files.contains(path))
      return {sys::PathKind::file, ""};
    for (const auto& [known, names] : directories)
      if (is_under(known, path))
        return {sys::PathKind::directory, ""};
    for (const auto* all : {&files, &links})
      for (const auto& [known, text] : *all)
        if (is_under(known, path))
          return {sys::PathKind::directory, ""};
    for (const auto& [target, type] : mounts)
      if (is_under(target, path))
        return {sys::PathKind::directory, ""};
    return {sys::PathKind::missing, ""};
  }

  [[nodiscard]] Sanitized run(const Argv& argv, const Rules& rules = {}) const {
    const sys::MountTable mount_table = table();
    sys::Resolver resolver(
        mount_table, [this](const std::string& path) { return look(path); },
        [this](const std::vector<std::string>& paths) {
          std::vector<sys::Seen> seen;
          for (const std::string& path : paths)
            seen.push_back(look(path));
          return seen;
        });
    Facts facts;
    facts.environment = environment;
    facts.directory = directory;
    facts.home = "/home/alice";
    Sanitized result = sanitize(argv, facts, rules);
    for (int round = 0; round < 32 && !result.questions.empty(); ++round) {
      for (const std::string& path : result.questions.places)
        facts.places[path] = resolver.resolve(path);
      for (const std::string& path : result.questions.texts) {
        const auto file = files.find(resolver.resolve(path).resolved);
        facts.texts[path] = file == files.end() ? std::nullopt : std::optional<std::string>(file->second);
      }
      for (const std::string& path : result.questions.listings) {
        const auto known = directories.find(resolver.resolve(path).resolved);
        facts.listings[path] = known == directories.end() ? std::vector<std::string>{} : known->second;
      }
      for (const std::string& text : result.questions.trees)
        facts.trees[text] = has_parser ? parse_shell(text) : std::nullopt;
      for (const std::string& path : result.questions.leftovers) {
        facts.leftovers[path] = {};
        for (const auto& [known, names] : directories)
          if (is_under(known, path) && known.ends_with(".incomplete"))
            facts.leftovers[path].push_back(known);
      }
      if (result.questions.mounts)
        facts.any_shared = resolver.any_shared();
      if (result.questions.local)
        facts.local = local;
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
