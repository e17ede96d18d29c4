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

/// An occurrence in a file, whose override goes in front of argv[insert_at].
Occurrence in_file(std::string flag, std::size_t word, std::string value, AppliedRule rule, std::size_t insert_at,
                   std::string override_start) {
  Occurrence one;
  one.spot = Spot::file;
  one.flag = std::move(flag);
  one.name_index = one.value_index = word;
  one.value = std::move(value);
  one.rule = std::move(rule);
  one.insert_at = insert_at;
  one.override_start = std::move(override_start);
  return one;
}

/// The text of a file; nullptr: it cannot be read.
const std::string* text_of(const Launch& launch, const std::string& path) {
  const auto& text = launch.stakes.text(path);
  return text ? &*text : nullptr;
}

/// Another setting of a YAML text that is made of `key`, as OmegaConf refers to it: `local_run_dir: ${data.key}/run`.
std::string derived_from(const std::string& text, std::string_view key) {
  for (const NestedScalar& scalar : nested_yaml_scalars(text))
    for (auto at = scalar.value.find("${"); at != std::string::npos; at = scalar.value.find("${", at + 1)) {
      const std::string inner = scalar.value.substr(at + 2, scalar.value.find('}', at) - at - 2);
      if (inner == key || (inner.ends_with(key) && inner[inner.size() - key.size() - 1] == '.'))
        return scalar.key;
    }
  return {};
}

/// Files of arguments: `<script>.args`, which HfArgumentParser reads silently in front of the command line, and
/// `@file`, which argparse puts in the place of the word.
void find_in_argument_files(const Launch& launch, const Program& program, const Framework* framework,
                            std::vector<Occurrence>& found) {
  const auto rule = rule_for_flag(program, framework, "--cache_dir", launch.rules.user);
  if (!rule)
    return;
  const auto look = [&](const std::string& path, std::size_t word, std::size_t insert_at) {
    const std::string* text = text_of(launch, path);
    if (text == nullptr)
      return;
    if (const auto value = cache_dir_of_arguments(*text))
      found.push_back(in_file("--cache_dir", word, *value, *rule, insert_at, "--cache_dir"));
  };
  if (const auto script = launch.script_path(program); script && script->ends_with(".py"))
    if (text_of(launch, script->substr(0, script->size() - 3) + ".args") != nullptr &&
        launch.source(program).hf_arguments)
      look(script->substr(0, script->size() - 3) + ".args", program.index, program.begin);
  for (std::size_t i = program.begin; i < program.end; ++i)
    if (const std::string& word = launch.argv[i]; word.size() > 1 && word[0] == '@')
      if (const auto file = launch.absolute(program, word.substr(1)))
        look(*file, i, i + 1);
}

/// HfArgumentParser's lone JSON or YAML file: whatever is appended to it would switch the mode.
void find_in_lone_document(const Launch& launch, const Program& program, const Framework* framework,
                           std::vector<Occurrence>& found, Decisions& out) {
  if (program.end != program.begin + 1 || !program.python)
    return;
  const std::size_t index = program.begin;
  const std::string& word = launch.argv[index];
  const auto path = launch.absolute(program, word);
  const auto rule = rule_for_flag(program, framework, "--cache_dir", launch.rules.user);
  if (word.empty() || word[0] == '-' || (!is_yaml_name(word) && !is_json_name(word)) || !path || !rule)
    return;
  const std::string* text = text_of(launch, *path);
  if (text == nullptr && launch.setting.in_text)
    out.push_back(warning(Severity::warning, "SF412", word, "it is not there yet, so nobody knows what it says",
                          "a `cache_dir` in it should not lie on shared storage: write the path of a local directory"));
  if (text == nullptr)
    return;
  const auto value = is_json_name(word) ? json_scalar(*text, k_key) : yaml_scalar(*text, k_key);
  if (!value)
    return;
  if (launch.source(program).hf_arguments) {
    Occurrence one = in_file(std::string(k_key), index, *value, *rule, index, "");
    one.spot = Spot::document;
    one.file = *path;
    one.derived = derived_from(*text, k_key);
    found.push_back(std::move(one));
    return;
  }
  if (const auto cache = launch.absolute(program, *value); cache && launch.stakes.is_shared(*cache))
    out.push_back(warning(Severity::warning, "SF412", word, "its cache_dir lies on shared storage and was left",
                          "give `--cache_dir` on the command line, or change the file"));
}

/// The YAML or JSON file among the first two arguments (a verb may come first), for programs that take one and
/// overrides behind it.
std::optional<std::size_t> document_among(const Launch& launch, const Program& program) {
  constexpr std::size_t first_words = 2;
  for (std::size_t i = program.begin; i < std::min(program.end, program.begin + first_words); ++i)
    if (const std::string& word = launch.argv[i]; is_yaml_name(word) || is_json_name(word))
      return i;
  return std::nullopt;
}

/// What document_among finds, read.
struct NamedDocument {
  std::size_t index;
  std::string path;
  const std::string& text;
  [[nodiscard]] std::optional<std::string> value_of(std::string_view key) const {
    return is_json_name(path) ? json_scalar(text, key) : yaml_scalar(text, key);
  }
};

/// nullopt: there is none, or it cannot be read.
std::optional<NamedDocument> named_document(const Launch& launch, const Program& program) {
  const auto index = document_among(launch, program);
  const auto path = index ? launch.absolute(program, launch.argv[*index]) : std::nullopt;
  const std::string* text = path ? text_of(launch, *path) : nullptr;
  return text == nullptr ? std::nullopt : std::optional<NamedDocument>({*index, *path, *text});
}

/// As OmegaConf and transformers' string_to_bool (hf_argparser.py) read it.
bool is_true(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text == "true" || text == "yes" || text == "on" || text == "1" || text == "t" || text == "y";
}

/// LLaMA-Factory: `[train] FILE key=value...`, later ones count (OmegaConf.from_cli).
void find_in_llamafactory_document(const Launch& launch, const Program& program, const Framework* framework,
                                   std::vector<Occurrence>& found) {
  const auto document = named_document(launch, program);
  if (!document)
    return;
  const auto value = document->value_of(k_key);
  const auto rule = rule_for_flag(program, framework, "--cache_dir", launch.rules.user);
  if (!value || !rule)
    return;
  found.push_back(in_file(std::string(k_key), document->index, *value, *rule, program.tail, "cache_dir="));
}

/// Puts down where in the command line the last word on data_shared_file_system stands.
void find_switch_in_words(const Launch& launch, const Program& program, std::optional<Occurrence>& found) {
  for (std::size_t i = program.begin; i < program.end; ++i) {
    const std::string& word = launch.argv[i];
    const auto equals = word.find('=');
    const bool is_flag = is_spelling_of(word.substr(0, equals), "--data_shared_file_system");
    if (!is_flag && word.substr(0, equals) != k_switch)
      continue;
    Occurrence one;
    one.spot = is_flag ? Spot::word : Spot::pair;
    one.flag = word.substr(0, equals);
    one.name_index = one.value_index = i;
    one.value_begin = equals == std::string::npos ? word.size() : equals + 1;
    one.value = word.substr(one.value_begin);
    if (is_flag && equals == std::string::npos && i + 1 < program.end && !launch.argv[i + 1].starts_with("-")) {
      one.value_index = i + 1;
      one.value_begin = 0;
      one.value = launch.argv[i + 1];
    }
    found = std::move(one);
  }
}

/// axolotl: `axolotl train FILE --key value`, `python -m axolotl.cli.train FILE --key=value`.
void find_in_axolotl_document(const Launch& launch, const Program& program, const Framework* framework,
                              std::vector<Occurrence>& found) {
  const auto document = named_document(launch, program);
  if (!document)
    return;
  const auto value = document->value_of("dataset_prepared_path");
  const auto rule = rule_for_flag(program, framework, "--dataset_prepared_path", launch.rules.user);
  if (value && rule)
    found.push_back(in_file("dataset_prepared_path", document->index, *value, *rule, document->index + 1,
                            "--dataset-prepared-path="));
}

/// Hydra: the file that --config-name and --config-path (relative to the script) name, overridden by `a.b.key=value`.
void find_in_hydra_document(const Launch& launch, const Program& program, const Framework* framework,
                            std::vector<Occurrence>& found, Decisions& out) {
  std::string name, directory;
  for (const Occurrence& one : read_flags(launch.argv, program.begin, program.end))
    if (one.flag == "--config-name" || one.flag == "-cn")
      name = one.value;
    else if (one.flag == "--config-path" || one.flag == "-cp")
      directory = one.value;
  const auto script = launch.script_path(program);
  if (name.empty() || !script)
    return;
  const std::string above = parent_path(*script);
  const std::string file = join_path(directory.starts_with('/') ? directory : join_path(above, directory),
                                     is_yaml_name(name) ? name : name + ".yaml");
  const std::string* text = text_of(launch, file);
  if (text == nullptr)
    return;
  for (const NestedScalar& scalar : nested_yaml_scalars(*text)) {
    const std::string last = scalar.key.substr(scalar.key.rfind('.') + 1);
    auto rule = rule_for_flag(program, framework, "--" + scalar.key, launch.rules.user);
    if (!rule && last == k_key)
      rule = rule_for_flag(program, framework, "--cache_dir", launch.rules.user);
    if (!rule || rule->transform == Transform::leave)
      continue;
    if (scalar.value.find("${") != std::string::npos) {
      out.push_back(warning(Severity::warning, "SF412", base_name(file),
                            "`" + scalar.key + "` is made of other values, so it was left",
                            "give `" + scalar.key + "=DIRECTORY` on the command line"));
      continue;
    }
    found.push_back(in_file(scalar.key, program.index, scalar.value, *rule, program.tail, scalar.key + "="));
    found.back().derived = derived_from(*text, scalar.key);
  }
}

} // namespace

std::vector<Occurrence> find_overrides(const Launch& launch, const Program& program, const Framework* framework) {
  std::vector<Occurrence> found;
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
    const std::string last = key.substr(key.rfind('.') == std::string::npos ? 0 : key.rfind('.') + 1);
    auto rule = rule_for_flag(program, framework, "--" + key, launch.rules.user);
    if (!rule && last == k_key)
      rule = rule_for_flag(program, framework, "--cache_dir", launch.rules.user);
    if (!rule)
      continue;
    Occurrence one;
    one.flag = key;
    one.name_index = one.value_index = i;
    one.value_begin = equals + 1;
    one.value = word.substr(equals + 1);
    one.rule = std::move(*rule);
    one.spot = Spot::pair;
    found.push_back(std::move(one));
  }
  return found;
}

std::vector<Occurrence> find_in_files(const Launch& launch, const Program& program, const Framework* framework,
                                      Decisions& out) {
  std::vector<Occurrence> found;
  if (!launch.stakes.any_shared() || program.kind == ProgramKind::shell || program.kind == ProgramKind::text)
    return found;
  if (framework != nullptr && framework->name == "llamafactory") {
    find_in_llamafactory_document(launch, program, framework, found);
  } else if (framework != nullptr && framework->name == "axolotl") {
    find_in_axolotl_document(launch, program, framework, found);
  } else {
    find_in_lone_document(launch, program, framework, found, out);
    find_in_hydra_document(launch, program, framework, found, out);
  }
  find_in_argument_files(launch, program, framework, found);
  return found;
}

std::optional<Occurrence> find_shared_file_system(const Launch& launch, const Program& program,
                                                  const Framework* framework) {
  if (framework == nullptr || framework->name != "llamafactory")
    return std::nullopt;
  std::optional<Occurrence> found;
  if (const auto document = named_document(launch, program))
    if (const auto value = document->value_of(k_switch))
      found = in_file(std::string(k_switch), document->index, *value, {}, program.tail, std::string(k_switch) + "=");
  find_switch_in_words(launch, program, found);
  const bool bare = found && found->spot == Spot::word && found->value.empty(); // a flag without a value is true
  return found && (bare || is_true(found->value)) ? found : std::nullopt;
}

std::optional<Decision> changed_copy(const Launch& launch, const Program& program, const Occurrence& one,
                                     const std::optional<std::string>& value) {
  const std::string word = launch.argv[one.value_index];
  const std::string text = launch.stakes.text(one.file).value_or("");
  const std::string content =
      is_json_name(word) ? with_json_scalar(text, one.flag, value) : with_yaml_scalar(text, one.flag, value);
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
  Decision decision;
  decision.action = Action::rewrite;
  decision.kind = ChangeKind::file;
  decision.flag = word;
  decision.index = one.value_index;
  decision.from = word;
  decision.to = join_path(directory, ".sharefs-" + key + "-" + base_name(one.file));
  decision.cache_class = one.rule.cache_class;
  decision.rule = one.rule.id;
  decision.reason =
      (value ? "a copy with cache_dir on the node's own disk; " : "a copy without cache_dir; ") + one.rule.reason;
  decision.edits = {{one.value_index, false, 0, word.size(), *decision.to}};
  decision.copy = FileCopy{*decision.to, content, word};
  return decision;
}

} // namespace sharefs::cachefix
