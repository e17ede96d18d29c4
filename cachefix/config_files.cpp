#include "cachefix/config_files.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_key = "cache_dir";

bool is_yaml(std::string_view name) {
  return name.ends_with(".yaml") || name.ends_with(".yml");
}
bool is_json(std::string_view name) {
  return name.ends_with(".json");
}

/// The part of a line behind `key:`, nullopt if the line is not that key at the top level.
std::optional<std::string_view> value_part(std::string_view line, std::string_view key) {
  if (!line.starts_with(key))
    return std::nullopt;
  line.remove_prefix(key.size());
  while (line.starts_with(' '))
    line.remove_prefix(1);
  if (!line.starts_with(':') || (line.size() > 1 && line[1] != ' ' && line[1] != '\t'))
    return std::nullopt;
  return trim(line.substr(1));
}

/// cache_dir of a JSON object; nullopt if there is none.
std::optional<std::string> json_scalar(const std::string& text) {
  const auto document = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains(k_key) || !document.at(std::string(k_key)).is_string())
    return std::nullopt;
  return document.at(std::string(k_key)).get<std::string>();
}

std::string with_json_scalar(const std::string& text, const std::optional<std::string>& value) {
  auto document = nlohmann::ordered_json::parse(text, nullptr, false);
  if (value)
    document[std::string(k_key)] = *value;
  else
    document.erase(std::string(k_key));
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// Sets what the flag said, in the environment; see flags.cpp for the reasons.
void set_model_safe(Draft& draft, const Program& program, const std::string& local, const std::string& path,
                    const std::string& rule) {
  draft.set_variable(program, "HF_DATASETS_CACHE", local, CacheClass::node_local, rule,
                     "datasets are built on the node's own disk");
  draft.set_variable(program, "HF_HUB_CACHE", path, CacheClass::read_mostly, rule, "models stay where they were");
  draft.set_variable(program, "HUGGINGFACE_HUB_CACHE", path, CacheClass::read_mostly, rule,
                     "models stay where they were (for older releases)");
  for (const std::string_view name :
       {"TRANSFORMERS_CACHE", "PYTORCH_TRANSFORMERS_CACHE", "PYTORCH_PRETRAINED_BERT_CACHE"})
    if (draft.variable(program, name).value_or(path) != path)
      draft.unset_variable(program, std::string(name), rule, "older releases would look for models there");
}

void only_report(Draft& draft, const std::string& subject, std::string why) {
  draft.diagnose(Severity::warning, "SF412", subject, std::move(why),
                 "give `--cache_dir` on the command line, or change the file");
}

/// Files that are read besides the arguments: looked into, reported, not changed.
void look_into(Draft& draft, const Program& program, const std::string& path, const std::string& shown) {
  const auto* text = draft.text(path);
  if (text == nullptr || !*text)
    return;
  std::vector<std::string> words;
  for (const std::string& line : split_lines(**text))
    for (std::string& word : split_words(line))
      words.push_back(std::move(word));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    if (!is_spelling_of(words[i].substr(0, equals), "--cache_dir"))
      continue;
    const std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                              : i + 1 < words.size()      ? words[i + 1]
                                                          : std::string();
    const auto at = draft.absolute(program, value);
    const sys::Place* place = at ? draft.place(*at) : nullptr;
    if (place != nullptr && place->shared)
      only_report(draft, shown, "its `--cache_dir` lies on shared storage and was left");
  }
}

} // namespace

std::optional<std::string> yaml_scalar(const std::string& text, std::string_view key) {
  std::optional<std::string> found;
  for (const std::string& line : split_lines(text)) {
    const auto part = value_part(line, key);
    if (!part)
      continue;
    std::string value(*part);
    if (!value.empty() && (value.front() == '"' || value.front() == '\'')) {
      const auto end = value.find(value.front(), 1);
      if (end == std::string::npos || value.find('\\') != std::string::npos)
        return std::nullopt;
      value = value.substr(1, end - 1);
    } else {
      if (const auto comment = value.find(" #"); comment != std::string::npos)
        value = std::string(trim(std::string_view(value).substr(0, comment)));
      if (value.empty() || std::string_view("&*!|>{[%@`#").find(value.front()) != std::string_view::npos)
        return std::nullopt;
    }
    if (found)
      return std::nullopt; // twice: which one counts is up to the reader
    found = std::move(value);
  }
  return found == "null" || found == "~" ? std::nullopt : found;
}

std::string with_yaml_scalar(const std::string& text, std::string_view key, const std::optional<std::string>& value) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    if (!value_part(line, key))
      out += line;
    else if (value)
      out += std::string(key) + ": " + *value + "\n";
    at = end;
  }
  return out;
}

std::vector<Occurrence> find_overrides(const Program& program, const Framework* framework, const Draft& draft) {
  std::vector<Occurrence> found;
  if (!program.python && program.kind != ProgramKind::program)
    return found;
  for (std::size_t i = program.begin; i < program.end; ++i) {
    const std::string& word = draft.argv[i];
    const auto equals = word.find('=');
    const auto first = word.find_first_not_of('+');
    if (equals == std::string::npos || first == std::string::npos || first > 2 || word[0] == '-')
      continue;
    const std::string key = word.substr(first, equals - first);
    if (key.empty() || !std::all_of(key.begin(), key.end(), [](unsigned char c) {
          return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == '@';
        }))
      continue;
    const std::string last = key.substr(key.rfind('.') == std::string::npos ? 0 : key.rfind('.') + 1);
    auto rule = rule_for_flag(program, framework, "--" + key, draft.rules.user);
    if (!rule && last == k_key)
      rule = rule_for_flag(program, framework, "--cache_dir", draft.rules.user);
    if (!rule)
      continue;
    Occurrence one;
    one.flag = key;
    one.name_index = one.value_index = i;
    one.value_begin = equals + 1;
    one.value = word.substr(equals + 1);
    one.rule = std::move(*rule);
    one.is_override = true;
    found.push_back(std::move(one));
  }
  return found;
}

void sanitize_config_file(Draft& draft, const Walk& walk, const Program& program, const Framework* framework) {
  if (!draft.facts.any_shared || program.kind == ProgramKind::shell || program.kind == ProgramKind::text)
    return;
  const bool factory = framework != nullptr && framework->name == "llamafactory";
  if (program.python && program.kind == ProgramKind::file && program.name.ends_with(".py"))
    if (const auto script = draft.absolute(program, program.name)) // HfArgumentParser reads it silently
      if (framework != nullptr && framework->name == "transformers")
        look_into(draft, program, script->substr(0, script->size() - 3) + ".args", program.name + ".args");
  std::optional<std::size_t> index;
  for (std::size_t i = program.begin; i < program.end; ++i) {
    const std::string& word = draft.argv[i];
    if (word.size() > 1 && word[0] == '@')
      if (const auto file = draft.absolute(program, word.substr(1)))
        look_into(draft, program, *file, word);
    // A lone file is HfArgumentParser's; LLaMA-Factory takes overrides behind it.
    const bool lone = i == program.begin && i + 1 == program.end;
    const bool first_file = factory && !index && (i == program.begin || i == program.begin + 1);
    if ((lone || first_file) && word[0] != '-' && (is_yaml(word) || is_json(word)))
      index = i;
  }
  if (!index || (!program.python && !factory))
    return;
  const std::string& word = draft.argv[*index];
  const auto path = draft.absolute(program, word);
  const auto* text = path ? draft.text(*path) : nullptr;
  if (text == nullptr || !*text)
    return;
  const auto value = is_json(word) ? json_scalar(**text) : yaml_scalar(**text, k_key);
  const auto cache = value ? draft.absolute(program, *value) : std::nullopt;
  const sys::Place* place = cache ? draft.place(*cache) : nullptr;
  if (place == nullptr || !place->shared)
    return;
  const bool overridden = std::any_of(draft.argv.begin() + static_cast<std::ptrdiff_t>(*index),
                                      draft.argv.begin() + static_cast<std::ptrdiff_t>(program.end),
                                      [](const std::string& one) { return one.starts_with("cache_dir="); });
  if (factory && overridden)
    return; // the override on the command line counts, and was judged as a flag
  const auto rule = rule_for_flag(program, framework, "--cache_dir", draft.rules.user);
  if (!rule || rule->transform == Transform::leave) {
    draft.keep(std::string(k_key), index, *value, rule ? rule->cache_class : CacheClass::never,
               rule ? rule->reason : "no rule is about it");
    return;
  }
  if (yaml_scalar(**text, "data_shared_file_system") == "true") {
    draft.diagnose(Severity::warning, "SF411", word,
                   "data_shared_file_system is true: only one node builds the datasets, so cache_dir was left",
                   "set it to false and run again to have the datasets on each node's own disk");
    draft.keep(std::string(k_key), index, *value, rule->cache_class, "data_shared_file_system is true");
    return;
  }
  const auto carried = can_carry(draft, walk, program);
  const auto local = draft.local_for(*cache, *place);
  if (!carried || !local)
    return;
  const bool drops = rule->transform == Transform::drop && *carried;
  if (factory && drops) {
    auto& before = draft.edits[program.tail].before;
    before.emplace_back("cache_dir=null");
    draft.out.changes.push_back({ChangeKind::argument, std::string(k_key), index, *value, "cache_dir=null",
                                 rule->cache_class, ChangeAction::set, rule->id, rule->reason});
    set_model_safe(draft, program, *local, place->path, rule->id);
    return;
  }
  if (!drops) {
    only_report(draft, word, "its cache_dir lies on shared storage and was left");
    return;
  }
  const std::string copy =
      parent_path(normalize_path(*path)) + "/.sharefs-" + cache_key(*path) + "-" + base_name(*path);
  const std::string content =
      is_json(word) ? with_json_scalar(**text, std::nullopt) : with_yaml_scalar(**text, k_key, std::nullopt);
  draft.out.copies.push_back({copy, content});
  draft.replace(*index, 0, word.size(), copy);
  draft.out.changes.push_back({ChangeKind::file, word, index, word, copy, rule->cache_class, ChangeAction::rewrite,
                               rule->id, "a copy without cache_dir; " + rule->reason});
  set_model_safe(draft, program, *local, place->path, rule->id);
}

} // namespace sharefs::cachefix
