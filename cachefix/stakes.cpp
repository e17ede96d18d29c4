#include "cachefix/stakes.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/launchers/launcher.hpp"

#include <algorithm>
#include <cerrno>

namespace sharefs::cachefix {
namespace {

// Programs start slowly with 16 ranks beside them: the command that is wrapped does, too.
constexpr std::chrono::milliseconds k_parser_deadline{15000};
constexpr std::size_t k_start = 256;
constexpr std::size_t k_most_directories = 500;

/// Made by the datasets and hub libraries, and by transformers before 4.22 (names of 64 hexadecimal digits).
constexpr std::string_view k_library_names =
    "models--* datasets--* spaces--* .* downloads extracted hub modules datasets xet metrics evaluate assets token "
    "stored_tokens version.txt version_diffusers_cache.txt CACHEDIR.TAG datasets_modules transformers_modules "
    "evaluate_modules json csv parquet text arrow imagefolder audiofolder videofolder webdataset pandas generator xml "
    "sql spark cache-*";

constexpr const char* k_telling[] = {"cache_dir", "cache-dir", "HfArgumentParser", "environ"};
/// What lies beside datasets where one directory is everything, as HF_HOME is.
constexpr std::string_view k_no_datasets = "hub modules xet datasets--* spaces--*";

bool is_library_name(const std::string& name) {
  const bool hash = name.size() >= 64 && name.find_first_not_of("0123456789abcdefABCDEF") >= 64;
  return hash || is_listed(name, k_library_names) || name.ends_with(".lock") || name.ends_with(".incomplete") ||
         name.find("___") != std::string::npos;
}

bool is_version(const std::string& name) {
  return std::ranges::count(name, '.') == 2 && name.find_first_not_of("0123456789.") == std::string::npos;
}

/// May it be a directory of a dataset, or of one of its configurations?
bool may_be_directory(const std::string& name) {
  return !name.starts_with("models--") && !name.starts_with('.') && !name.ends_with(".lock") &&
         !name.ends_with(".arrow") && !name.ends_with(".json") && !name.ends_with(".txt");
}

/// What is known of `key`, asked if nothing is yet.
template <class Known, class Ask> auto& remembered(Known& known, const std::string& key, const Ask& ask) {
  auto found = known.find(key);
  if (found == known.end())
    found = known.emplace(key, ask()).first;
  return found->second;
}

/// Asks in one question for all `keys` of which nothing is known.
template <class Known, class Ask> void remember(Known& known, const std::vector<std::string>& keys, const Ask& ask) {
  std::vector<std::string> unknown;
  for (const std::string& key : keys)
    if (!known.contains(key) && std::ranges::find(unknown, key) == unknown.end())
      unknown.push_back(key);
  if (unknown.empty())
    return;
  auto answers = ask(unknown);
  for (std::size_t i = 0; i < unknown.size(); ++i)
    known.emplace(unknown[i], std::move(answers[i]));
}

} // namespace

bool Stakes::any_shared() {
  if (!m_any_shared)
    m_any_shared = m_answers.any_shared();
  return *m_any_shared;
}

std::vector<sys::Entry> Stakes::entries(const std::vector<std::string>& paths, const sys::EntryQuery& what) {
  return m_budget.take(&Budget::files, paths.size()) ? m_answers.entries(paths, what, m_budget.time(Budget::k_look))
                                                     : std::vector<sys::Entry>(paths.size());
}

void Stakes::expect(const std::vector<std::string>& paths) {
  remember(m_places, paths, [&](const auto& unknown) {
    return any_shared() ? entries(unknown, {.path = {}, .access = true}) : std::vector<sys::Entry>(unknown.size());
  });
}

const sys::Entry& Stakes::place(const std::string& path) {
  expect({path});
  return m_places.at(path);
}

const std::optional<std::string>& Stakes::text(const std::string& path) {
  return remembered(m_texts, path, [&] {
    auto entry = std::move(entries({path}, {.path = {}, .read_bytes = Budget::k_text}).front());
    const bool whole = entry.kind == sys::EntryKind::file && entry.error_number == 0 && entry.size <= Budget::k_text;
    return whole && m_budget.take(&Budget::bytes, entry.content.size())
               ? std::optional<std::string>(std::move(entry.content))
               : std::nullopt;
  });
}

const std::string& Stakes::start(const std::string& path) {
  return remembered(m_starts, path,
                    [&] { return std::move(entries({path}, {.path = {}, .read_bytes = k_start}).front().content); });
}

void Stakes::expect_names(const std::vector<std::string>& paths) {
  remember(m_names, paths, [&](const auto& unknown) {
    std::vector<std::optional<Names>> found;
    // Through automount points: the program is about to go there.
    for (sys::Entry& entry : entries(unknown, {.path = {}, .list = true, .automount = true})) {
      const bool answered =
          entry.kind == sys::EntryKind::missing || (entry.kind == sys::EntryKind::directory && entry.error_number == 0);
      if (entry.error_number == EACCES)
        m_refused.insert(entry.path);
      found.push_back(answered ? std::optional(std::move(entry.names)) : std::nullopt);
    }
    return found;
  });
}

const std::optional<Names>& Stakes::names(const std::string& path) {
  expect_names({path});
  return m_names.at(path);
}

const std::optional<std::string>& Stakes::syntax_tree(const std::string& shell_text) {
  return remembered(m_trees, shell_text, [&]() -> std::optional<std::string> {
    if (!m_budget.take(&Budget::parsers) || !m_budget.take(&Budget::bytes, shell_text.size()))
      return std::nullopt;
    auto tree = m_answers.syntax_tree(shell_text, m_budget.time(k_parser_deadline));
    return tree && m_budget.take(&Budget::bytes, tree->size()) ? std::move(tree) : std::nullopt;
  });
}

const SourceFacts& Stakes::source(const std::string& path) {
  static const SourceFacts k_none;
  const auto& source = text(path);
  return source ? facts(*source) : k_none;
}

const SourceFacts& Stakes::facts(const std::string& python_source) {
  return remembered(m_sources, python_source, [&] {
    return m_answers.may_tell(python_source) && m_budget.take(&Budget::parsers)
               ? m_answers.source_facts(python_source, m_budget.time(k_parser_deadline))
               : SourceFacts{};
  });
}

const LocalRoot& Stakes::local(Holds holds) {
  auto& known = m_local.at(static_cast<std::size_t>(holds));
  if (!known)
    known = m_answers.local(holds);
  return *known;
}

const Stakes::Scan& Stakes::scan(const std::string& cache) {
  return remembered(m_scans, cache, [&] {
    constexpr int k_levels = 4;
    Scan scan;
    std::vector<std::string> level{cache};
    for (int depth = 0; depth < k_levels && !level.empty(); ++depth) {
      expect_names(level);
      std::vector<std::string> below;
      for (const std::string& directory : level) {
        const auto& found = names(directory);
        scan.complete = scan.complete || !found; // a file, or no answer
        for (const std::string& name : found.value_or(Names()))
          if (name.ends_with(".incomplete"))
            scan.leftovers.push_back(join_path(directory, name));
          else if (!may_be_directory(name) || (depth == 0 && is_listed(name, k_no_datasets)))
            continue;
          else if (depth + 1 == k_levels)
            scan.complete = true;
          else if (below.size() < k_most_directories)
            below.push_back(join_path(directory, name));
      }
      level = std::move(below);
    }
    return scan;
  });
}

bool Stakes::has_datasets(const std::string& cache) {
  const auto& found = names(cache);
  return !found || std::ranges::any_of(*found, [](const std::string& name) {
    return may_be_directory(name) && !is_listed(name, k_no_datasets);
  });
}

/// BUILDER/CONFIG/VERSION (datasets/builder.py, _relative_data_dir).
bool Stakes::is_builder_directory(const std::string& path) {
  for (const std::string& config : names(path).value_or(Names())) {
    const auto& versions = names(join_path(path, config));
    if (versions && std::ranges::any_of(*versions, is_version))
      return true;
  }
  return false;
}

std::string Stakes::foreign_name(const std::string& cache) {
  for (const std::string& name : names(cache).value_or(Names()))
    if (!is_library_name(name) && !is_builder_directory(join_path(cache, name)))
      return name;
  return {};
}

bool MachineAnswers::any_shared() {
  const auto mounts = m_system.mounts();
  if (!mounts)
    m_error = mounts.error();
  return mounts && std::any_of(mounts->entries().begin(), mounts->entries().end(),
                               [](const sys::MountEntry& mount) { return sys::is_shared(mount); });
}

std::vector<sys::Entry> MachineAnswers::entries(const std::vector<std::string>& paths, const sys::EntryQuery& what,
                                                std::chrono::milliseconds deadline) {
  sys::EntryRequest request;
  request.deadline = deadline;
  for (const std::string& path : paths) {
    request.queries.push_back(what);
    request.queries.back().path = path;
    request.queries.back().follow = true;
  }
  return m_system.entries(request);
}

std::optional<std::string> MachineAnswers::syntax_tree(const std::string& shell_text,
                                                       std::chrono::milliseconds deadline) {
  sys::Command command;
  command.argv = {"shfmt", "--tojson", "-ln", "bash"}; // the system's own, whatever PATH says
  command.input = shell_text.empty() ? "\n" : shell_text;
  command.deadline = deadline;
  command.output_limit = Budget::k_tree;
  auto done = m_system.run(command);
  return done && done->ok() ? std::optional<std::string>(std::move(done->out)) : std::nullopt;
}

bool MachineAnswers::may_tell(const std::string& python_source) const {
  // The interpreter takes some 50 ms, and has nothing to say of a source without these words.
  return std::ranges::any_of(k_telling,
                             [&](const char* word) { return python_source.find(word) != std::string::npos; });
}

SourceFacts MachineAnswers::source_facts(const std::string& python_source, std::chrono::milliseconds deadline) {
  auto done = m_system.run(source_facts_command(python_source, deadline));
  return done && done->ok() ? parse_source_facts(done->out) : SourceFacts{};
}

LocalRoot MachineAnswers::local(Holds holds) {
  return find_local_root(m_system, m_choice, m_system.identity(), holds);
}

} // namespace sharefs::cachefix
