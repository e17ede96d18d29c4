// Files and overrides that say where caches are. Originals are never edited.
#include "cachefix/flags.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/files/config_text.hpp"

#include <algorithm>
#include <cctype>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_key = "cache_dir";
constexpr std::string_view k_switch = "data_shared_file_system";
constexpr std::size_t k_largest_settings = 256U << 10U; ///< larger ones are datasets

/// An occurrence in a file, whose override goes in front of argv[insert_at].
Occurrence in_file(std::string flag, std::size_t word, std::string value, AppliedRule rule, std::size_t insert_at,
                   std::string override_start) {
  return {.spot = Spot::file,
          .flag = std::move(flag),
          .name_index = word,
          .value_index = word,
          .value = std::move(value),
          .rule = std::move(rule),
          .insert_at = insert_at,
          .override_start = std::move(override_start)};
}

/// Another setting of a YAML text that is made of `key`, as OmegaConf refers to it: `local_run_dir: ${data.key}/run`.
std::string derived_from(const std::string& text, std::string_view key, Budget& budget) {
  for (const NestedScalar& scalar : nested_yaml_scalars(text, budget))
    for (auto at = scalar.value.find("${"); at != std::string::npos; at = scalar.value.find("${", at + 1)) {
      const std::string inner = scalar.value.substr(at + 2, scalar.value.find('}', at) - at - 2);
      if (inner == key || (inner.ends_with(key) && inner[inner.size() - key.size() - 1] == '.'))
        return scalar.key;
    }
  return {};
}

/// The YAML or JSON file among the first two arguments (a verb may come first), for programs that take one and
/// overrides behind it. Its index; nullopt: there is none.
std::optional<std::size_t> named_document(const Launch& launch, const Program& program) {
  constexpr std::size_t first_words = 2;
  for (std::size_t i = program.begin; i < std::min(program.end, program.begin + first_words); ++i)
    if (launch.argv[i].starts_with('-'))
      break;
    else if (is_document_name(launch.argv[i]))
      return i;
  return std::nullopt;
}

/// A scalar of the file that a word names.
std::optional<std::string> scalar_of(const Launch& launch, const Program& program, const std::string& word,
                                     std::string_view key) {
  const auto path = launch.absolute(program, word);
  const auto text = path ? launch.stakes.text(*path) : std::nullopt;
  return text ? scalar_in(word, *text, key) : std::nullopt;
}

/// As OmegaConf and transformers' string_to_bool (hf_argparser.py) read it.
constexpr std::string_view k_true = "true yes on 1 t y";

/// Puts down where in the command line the last word on data_shared_file_system stands.
void find_switch_in_words(const Launch& launch, const Program& program, std::optional<Occurrence>& found) {
  for (std::size_t i = program.begin; i < program.end; ++i) {
    const std::string& word = launch.argv[i];
    const auto equals = word.find('=');
    const bool is_flag = is_spelling_of(word.substr(0, equals), "--data_shared_file_system");
    if (!is_flag && word.substr(0, equals) != k_switch)
      continue;
    const bool apart =
        equals == std::string::npos && is_flag && i + 1 < program.end && !launch.argv[i + 1].starts_with("-");
    const std::size_t begin = apart ? 0 : equals == std::string::npos ? word.size() : equals + 1;
    found = Occurrence{.spot = is_flag ? Spot::word : Spot::pair,
                       .flag = word.substr(0, equals),
                       .name_index = i,
                       .value_index = apart ? i + 1 : i,
                       .value_begin = begin,
                       .value = launch.argv[apart ? i + 1 : i].substr(begin)};
  }
}

class FileFinder {
 public:
  FileFinder(const Launch& launch, const Program& program, const Framework* framework, Decisions& out)
      : m_launch(launch), m_program(program), m_framework(framework), m_out(out) {}

  Occurrences find() {
    const std::string_view name = m_framework == nullptr ? std::string_view() : m_framework->name;
    if (name == "llamafactory") { // `[train] FILE key=value...`, later ones count (OmegaConf.from_cli)
      in_named_document(k_key, "cache_dir=");
    } else if (name == "axolotl") { // `axolotl train FILE --key value`, `python -m axolotl.cli.train FILE --key=value`
      in_named_document("dataset_prepared_path", "--dataset-prepared-path=");
    } else {
      in_lone_document();
      in_hydra_document();
    }
    in_argument_files();
    in_other_documents();
    return std::move(m_found);
  }

 private:
  [[nodiscard]] std::optional<AppliedRule> rule_for(const std::string& key) const {
    return rule_for_key(m_launch, m_program, m_framework, key);
  }

  /// Of a file of settings that the text may make before.
  void say_if_missing(const std::string& word) {
    const auto path = m_launch.absolute(m_program, word);
    if (m_launch.setting.in_text && path && !m_launch.stakes.text(*path))
      m_out.push_back(
          warning("SF412", word, "it is not there yet, so nobody knows what it says",
                  "a `cache_dir` in it should not lie on shared storage: write the path of a local directory"));
  }

  /// A file whose value a word behind it overrides.
  void in_named_document(std::string_view key, const std::string& override_start) {
    const auto document = named_document(m_launch, m_program);
    if (document)
      say_if_missing(m_launch.argv[*document]);
    const auto value = document ? scalar_of(m_launch, m_program, m_launch.argv[*document], key) : std::nullopt;
    const auto rule = rule_for(std::string(key));
    if (value && rule)
      m_found.push_back(in_file(std::string(key), *document, *value, *rule,
                                override_start.starts_with("--") ? *document + 1 : m_program.end, override_start));
  }

  /// Files of arguments: `<script>.args`, which HfArgumentParser reads silently in front of the command line, and
  /// `@file`, which argparse puts in the place of the word.
  void in_argument_files() {
    if (const auto script = m_launch.script_path(m_program); script && script->ends_with(".py"))
      if (const std::string path = script->substr(0, script->size() - 3) + ".args";
          m_launch.stakes.text(path) && m_launch.source(m_program).hf_arguments)
        in_arguments(path, m_program.index, m_program.begin);
    for (std::size_t i = m_program.begin; i < m_program.end; ++i)
      if (const std::string& word = m_launch.argv[i]; word.size() > 1 && word[0] == '@')
        if (const auto file = m_launch.absolute(m_program, word.substr(1)))
          in_arguments(*file, i, i + 1);
  }
  void in_arguments(const std::string& path, std::size_t word, std::size_t insert_at) {
    const auto rule = rule_for(std::string(k_key));
    const auto text = rule ? m_launch.stakes.text(path) : std::nullopt;
    if (const auto value = text ? cache_dir_of_arguments(*text) : std::nullopt)
      m_found.push_back(in_file("--cache_dir", word, *value, *rule, insert_at, "--cache_dir"));
  }

  /// HfArgumentParser's lone JSON or YAML file: whatever is appended to it would switch the mode.
  void in_lone_document() {
    if (m_program.end != m_program.begin + 1 || !m_program.python)
      return;
    const std::size_t index = m_program.begin;
    const std::string& word = m_launch.argv[index];
    const auto path = m_launch.absolute(m_program, word);
    const auto rule = rule_for(std::string(k_key));
    if (word.starts_with('-') || !is_document_name(word) || !path || !rule)
      return;
    say_if_missing(word);
    const auto& text = m_launch.stakes.text(*path);
    const auto value = text ? scalar_in(word, *text, k_key) : std::nullopt;
    if (!value)
      return;
    if (m_launch.source(m_program).hf_arguments) {
      Occurrence& one = m_found.emplace_back(in_file(std::string(k_key), index, *value, *rule, index, ""));
      one.spot = Spot::document;
      one.file = *path;
      one.derived = derived_from(*text, k_key, m_launch.stakes.budget());
    }
  }

  /// Hydra: the file that --config-name and --config-path (relative to the script) name, overridden by `a.b.key=value`.
  void in_hydra_document() {
    std::string name, directory;
    for (const Occurrence& one : read_flags(m_launch.argv, m_program.begin, m_program.end))
      if (one.flag == "--config-name" || one.flag == "-cn")
        name = one.value;
      else if (one.flag == "--config-path" || one.flag == "-cp")
        directory = one.value;
    const auto script = m_launch.script_path(m_program);
    if (name.empty() || !script)
      return;
    const std::string file =
        join_path(join_path(parent_path(*script), directory), is_yaml_name(name) ? name : name + ".yaml");
    const std::string text = m_launch.stakes.text(file).value_or("");
    for (const NestedScalar& scalar : nested_yaml_scalars(text, m_launch.stakes.budget())) {
      const auto rule = rule_for(scalar.key);
      if (!rule || rule->transform == Transform::leave)
        continue;
      if (scalar.value.find("${") != std::string::npos) {
        m_out.push_back(warning("SF412", base_name(file),
                                "`" + scalar.key + "` is made of other values, so it was left",
                                "give `" + scalar.key + "=DIRECTORY` on the command line"));
        continue;
      }
      m_found.push_back(in_file(scalar.key, m_program.index, scalar.value, *rule, m_program.end, scalar.key + "="));
      m_found.back().derived = derived_from(text, scalar.key, m_launch.stakes.budget());
    }
  }

  /// Any other that a word names: how it is read, and what goes before it, is not known.
  void in_other_documents() {
    if (m_launch.runs_no_python(m_program))
      return;
    for (std::size_t i = m_program.begin; i < m_program.end; ++i) {
      const std::string& word = m_launch.argv[i];
      const std::string name = word.starts_with('-') ? word.substr(word.find('=') + 1) : word;
      const auto path = is_document_name(name) ? m_launch.absolute(m_program, name) : std::nullopt;
      const auto text = path ? m_launch.stakes.text(*path) : std::nullopt;
      const std::string& option = word == name && i > m_program.begin ? m_launch.argv[i - 1] : word;
      if (path && is_spelling_of(option.substr(0, option.find('=')), "--config"))
        say_if_missing(name);
      if (!text || text->size() > k_largest_settings || text->find("cache") == std::string::npos ||
          std::ranges::any_of(m_found, [i](const Occurrence& one) { return one.name_index == i; }))
        continue;
      for (const NestedScalar& scalar : nested_yaml_scalars(*text, m_launch.stakes.budget())) {
        const auto rule = rule_for(scalar.key);
        const auto cache = m_launch.shared_path(m_program, scalar.value);
        if ((rule ? rule->transform != Transform::leave : names_cache(scalar.key)) && cache &&
            !stays_safely(m_launch, scalar.key, *cache, m_launch.is_offline(m_program)))
          m_out.push_back(warning("SF412", name, "its " + scalar.key + " lies on shared storage and was left",
                                  "give it on the command line, if the program takes it there, or change the file"));
      }
    }
  }

  const Launch& m_launch;
  const Program& m_program;
  const Framework* m_framework;
  Decisions& m_out;
  Occurrences m_found;
};

} // namespace

std::optional<AppliedRule> rule_for_key(const Launch& launch, const Program& program, const Framework* framework,
                                        const std::string& key) {
  auto rule = rule_for_flag(program, framework, "--" + key, launch.rules.user);
  if (!rule && key.substr(key.rfind('.') + 1) == k_key)
    rule = rule_for_flag(program, framework, "--cache_dir", launch.rules.user);
  const bool known = !rule || rule->transform != Transform::evidence || rule->by_user;
  return known || !launch.runs_no_python(program) ? rule : std::nullopt;
}

Occurrences find_overrides(const Launch& launch, const Program& program, const Framework* framework, Decisions& out) {
  Occurrences found;
  if (!program.python && program.kind != ProgramKind::program)
    return found;
  for (std::size_t i = program.begin; i < program.end; ++i) {
    const std::string& word = launch.argv[i];
    const auto equals = word.find('=');
    const auto first = word.find_first_not_of('+');
    if (equals == std::string::npos || first == std::string::npos || first > 2 || word[0] == '-')
      continue;
    const std::string key = word.substr(first, equals - first);
    if (key.empty() || !std::ranges::all_of(key, [](unsigned char c) {
          return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == '@';
        }))
      continue;
    auto rule = rule_for_key(launch, program, framework, key);
    if (!rule)
      continue;
    std::string value = word.substr(equals + 1);
    const bool in_quotes =
        value.size() > 1 && value.front() == value.back() && (value.front() == '"' || value.front() == '\'');
    if (in_quotes)
      value = value.substr(1, value.size() - 2);
    if (rule->transform != Transform::leave && value.find_first_of("${}[](),*\"'") != std::string::npos) {
      out.push_back(warning("SF412", key, "its value is no plain path (a sweep, or made of others), so it was left",
                            "give `" + key + "=DIRECTORY` on the command line"));
      continue;
    }
    found.push_back({.spot = Spot::pair,
                     .flag = key,
                     .name_index = i,
                     .value_index = i,
                     .value_begin = equals + 1 + (in_quotes ? 1 : 0),
                     .value = std::move(value),
                     .rule = *std::move(rule)});
  }
  return found;
}

Occurrences find_in_files(const Launch& launch, const Program& program, const Framework* framework, Decisions& out) {
  if (program.kind == ProgramKind::shell || program.kind == ProgramKind::text)
    return {};
  return FileFinder(launch, program, framework, out).find();
}

std::optional<Occurrence> find_shared_file_system(const Launch& launch, const Program& program,
                                                  const Framework* framework) {
  if (framework == nullptr || framework->name != "llamafactory")
    return std::nullopt;
  std::optional<Occurrence> found;
  if (const auto document = named_document(launch, program))
    if (const auto value = scalar_of(launch, program, launch.argv[*document], k_switch))
      found = in_file(std::string(k_switch), *document, *value, {}, program.end, std::string(k_switch) + "=");
  find_switch_in_words(launch, program, found);
  const bool bare = found && found->spot == Spot::word && found->value.empty(); // a flag without a value is true
  return found && (bare || is_on(found->value, k_true)) ? found : std::nullopt;
}

std::optional<Decision> changed_copy(const Launch& launch, const Program& program, const Occurrence& one,
                                     const std::optional<std::string>& value) {
  const std::string word = launch.argv[one.value_index];
  const std::string text = launch.stakes.text(one.file).value_or("");
  const std::string content = with_scalar(word, text, one.flag, value);
  const bool elsewhere = runs_elsewhere(launch, program);
  std::string directory = elsewhere ? "" : launch.stakes.local().directory;
  for (const std::string& candidate :
       {parent_path(normalize_path(one.file)), program.directory, launch.home(program)}) {
    if (!candidate.starts_with('/') || is_unknown(candidate))
      continue;
    const sys::Entry& place = launch.stakes.place(candidate);
    if (place.kind == sys::EntryKind::directory && place.writable && (!elsewhere || place.shared)) {
      directory = candidate;
      break;
    }
  }
  if (directory.empty())
    return std::nullopt;
  // Named by its content and its user: two launches, or two users, never write one file.
  const std::string key = key_of(launch.stakes.local().directory + '\n' + content);
  const std::string path = join_path(directory, ".sharefs-" + key + "-" + base_name(one.file));
  return Decision{.action = Action::rewrite,
                  .kind = ChangeKind::file,
                  .flag = word,
                  .index = one.value_index,
                  .from = word,
                  .to = path,
                  .cache_class = one.rule.cache_class,
                  .rule = one.rule.id,
                  .reason = (value ? "a copy with cache_dir on the node's own disk; " : "a copy without cache_dir; ") +
                            one.rule.reason,
                  .edits = {{one.value_index, false, 0, word.size(), path}},
                  .copy = FileCopy{path, content, word}};
}

} // namespace sharefs::cachefix
