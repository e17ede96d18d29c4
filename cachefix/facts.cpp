#include "cachefix/facts.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

constexpr std::chrono::milliseconds k_look_deadline{1500}; // for one answer of a share
constexpr std::chrono::milliseconds k_parser_deadline{2000};
constexpr std::size_t k_most_text = 4U << 20U;

std::optional<std::string> text_of(sys::Entry&& entry) {
  const bool whole = entry.kind == sys::EntryKind::file && entry.error_number == 0 && entry.size <= k_most_text;
  return whole ? std::optional<std::string>(std::move(entry.content)) : std::nullopt;
}

/// nullopt: no answer.
std::optional<std::vector<std::string>> names_of(sys::Entry&& entry) {
  const bool answered = entry.kind == sys::EntryKind::missing || entry.error_number == 0;
  return answered ? std::optional(std::move(entry.names)) : std::nullopt;
}

/// All that is asked about paths, in one request.
void answer_paths(sys::System& system, const Questions& questions, Facts& facts) {
  sys::EntryRequest request;
  request.deadline = k_look_deadline;
  const auto ask = [&request](const std::set<std::string>& paths, bool list, std::size_t read_bytes) {
    for (const std::string& path : paths) {
      sys::EntryQuery query;
      query.path = path;
      query.follow = true;
      query.list = list;
      query.automount = list; // the program is about to go there
      query.read_bytes = read_bytes;
      request.queries.push_back(std::move(query));
    }
  };
  ask(questions.places, false, 0);
  ask(questions.texts, false, k_most_text);
  ask(questions.listings, true, 0);
  if (request.queries.empty())
    return;
  auto entries = system.entries(request);
  auto next = entries.begin();
  for (const std::string& path : questions.places)
    facts.places.emplace(path, std::move(*next++));
  for (const std::string& path : questions.texts)
    facts.texts.emplace(path, text_of(std::move(*next++)));
  for (const std::string& path : questions.listings)
    facts.listings.emplace(path, names_of(std::move(*next++)));
}

std::optional<std::string> syntax_tree(sys::System& system, const std::string& text) {
  sys::Command command;
  command.argv = {"shfmt", "--tojson", "-ln", "bash"};
  command.user_path = true;
  command.input = text.empty() ? "\n" : text;
  command.deadline = k_parser_deadline;
  command.output_limit = 32U << 20U;
  auto done = system.run(command);
  return done && done->ok() ? std::optional<std::string>(std::move(done->out)) : std::nullopt;
}

/// `datasets` builds in CACHE/BUILDER/CONFIG/VERSION/HASH.incomplete: level by level.
std::vector<std::string> find_leftovers(sys::System& system, const std::string& path) {
  constexpr int k_levels = 4;
  constexpr std::size_t k_most_directories = 500;
  std::vector<std::string> found;
  std::vector<std::string> level{path};
  for (int depth = 0; depth < k_levels && !level.empty(); ++depth) {
    sys::EntryRequest request;
    request.deadline = k_look_deadline;
    for (const std::string& directory : level) {
      sys::EntryQuery query;
      query.path = directory;
      query.follow = depth == 0;
      query.list = true;
      request.queries.push_back(std::move(query));
    }
    level.clear();
    for (const sys::Entry& entry : system.entries(request))
      for (const std::string& name : entry.names) {
        if (name.ends_with(".incomplete"))
          found.push_back(join_path(entry.resolved, name));
        else if (level.size() < k_most_directories && !name.starts_with("models--") && !name.starts_with('.') &&
                 !name.ends_with(".lock") && !name.ends_with(".arrow") && !name.ends_with(".json"))
          level.push_back(join_path(entry.resolved, name));
      }
  }
  return found;
}

} // namespace

Facts first_facts(sys::System& system, std::vector<std::string> environment, std::string directory) {
  Facts facts;
  facts.environment = std::move(environment);
  facts.directory = std::move(directory);
  const bool has_home = std::any_of(facts.environment.begin(), facts.environment.end(),
                                    [](const std::string& entry) { return entry.starts_with("HOME=/"); });
  if (!has_home)
    facts.home = system.identity().home;
  return facts;
}

Result<void> answer(sys::System& system, const LocalChoice& local, const Questions& questions, Facts& facts) {
  if (!facts.any_shared) {
    const auto mounts = system.mounts();
    if (!mounts)
      return fail(mounts.error());
    facts.any_shared = std::any_of(mounts->entries().begin(), mounts->entries().end(),
                                   [](const sys::MountEntry& mount) { return sys::is_shared_fs_type(mount.fs_type); });
  }
  answer_paths(system, questions, facts);
  for (const std::string& text : questions.trees)
    facts.trees.emplace(text, syntax_tree(system, text));
  for (const std::string& path : questions.leftovers)
    facts.leftovers.emplace(path, find_leftovers(system, path));
  if (questions.local && !facts.local)
    facts.local = find_local_root(system, local, system.identity());
  return {};
}

} // namespace sharefs::cachefix
