#include "cachefix/launch.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace sharefs::cachefix {
namespace {

/// As datasets/config.py and huggingface_hub/constants.py read a switch.
constexpr std::string_view k_on = "1 on yes true";

bool is_python_start(const std::string& start) {
  return start.starts_with("#!") && start.substr(0, start.find('\n')).find("python") != std::string::npos;
}

} // namespace

std::string shown(std::string text) {
  std::ranges::replace(text, k_unknown_part, '$');
  return text;
}

bool is_on(std::string value, std::string_view words) {
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  return is_listed(value, words);
}

Setting setting_of(const Start& start) {
  Setting setting;
  for (const std::string& entry : start.environment)
    if (const auto equals = entry.find('='); equals != std::string::npos)
      setting.environment.emplace(entry.substr(0, equals), entry.substr(equals + 1)); // getenv(3) takes the first
  setting.directory = start.directory;
  setting.home = start.home;
  return setting;
}

std::optional<std::string> Launch::variable(const Program& program, std::string_view name) const {
  std::string value;
  if (const Assignment* own = program.assignment_of(name))
    value = own->value;
  else if (const auto entry = setting.environment.find(name);
           entry != setting.environment.end() && !program.takes_away(name))
    value = entry->second;
  return value.empty() ? std::nullopt : std::optional(value);
}

std::string Launch::home(const Program& program) const {
  const auto home = variable(program, "HOME");
  return home && home->starts_with('/') ? *home : setting.home;
}

std::optional<std::string> Launch::absolute(const Program& program, const std::string& value) const {
  if (value.empty() || value.find("://") != std::string::npos || value.find('\0') != std::string::npos ||
      is_unknown(value))
    return std::nullopt;
  if (value.front() == '/')
    return value;
  if (value == "~" || value.starts_with("~/")) {
    const std::string base = home(program);
    return base.empty() ? std::nullopt : std::optional<std::string>(base + value.substr(1));
  }
  if (is_unknown(program.directory))
    return std::nullopt;
  return program.directory == "/" ? "/" + value : program.directory + "/" + value;
}

std::optional<std::string> Launch::shared_path(const Program& program, const std::string& value) const {
  auto path = absolute(program, value);
  return path && stakes.is_shared(*path) ? path : std::nullopt;
}

std::vector<std::string> Launch::paths_of(const Program& program, const std::string& command,
                                          const std::string& if_no_path) const {
  std::vector<std::string> paths;
  if (command.find('/') != std::string::npos) {
    if (auto path = absolute(program, command)) // a URL is none
      paths.push_back(*std::move(path));
    return paths;
  }
  for (const std::string& directory : split(variable(program, "PATH").value_or(if_no_path), ':'))
    if (directory.starts_with('/'))
      paths.push_back(join_path(directory, command));
  return paths;
}

std::optional<std::string> Launch::script_path(const Program& program) const {
  if (!program.python || program.kind == ProgramKind::file)
    return program.python ? absolute(program, program.name) : std::nullopt;
  if (program.kind != ProgramKind::module)
    return std::nullopt;
  std::string module = program.name;
  std::ranges::replace(module, '.', '/');
  for (const char* end : {".py", "/__main__.py"})
    if (auto path = absolute(program, module + end); path && stakes.text(*path))
      return path;
  return std::nullopt;
}

const std::string* Launch::source_text(const Program& program) const {
  if (program.kind == ProgramKind::text || (program.python && program.name == "-"))
    return program.kind == ProgramKind::text ? &program.name : &setting.input;
  const auto path = stakes.any_shared() ? script_path(program) : std::nullopt;
  const auto* text = path ? &stakes.text(*path) : nullptr;
  return text != nullptr && *text ? &**text : nullptr;
}

const SourceFacts& Launch::source(const Program& program) const {
  static const SourceFacts k_none;
  const std::string* text = source_text(program);
  return text != nullptr ? stakes.facts(*text) : k_none;
}

std::string Launch::first_variable(const Program& program, std::string_view names) const {
  const auto is_set = [&](const std::string& name) { return is_listed(name, names) && variable(program, name); };
  for (const auto& [name, value] : setting.environment)
    if (is_set(name))
      return name;
  const auto own = std::ranges::find_if(program.assigned, is_set, &Assignment::name);
  return own == program.assigned.end() ? std::string() : own->name;
}

std::string Launch::local_for(const std::string& shared_path, Holds holds) const {
  const std::string& root = stakes.local(holds).directory;
  return root.empty() ? root : root + "/" + cache_key(shared_path);
}

bool Launch::is_offline(const Program& program, std::string_view cache) const {
  const auto offline = [&](const char* name) { // a value that is not known may be one
    const std::string value = variable(program, name).value_or("");
    return is_unknown(value) || is_on(value, k_on);
  };
  if (cache == "HF_MODULES_CACHE" && offline("HF_EVALUATE_OFFLINE")) // evaluate/config.py
    return true;
  if (variable(program, "HF_DATASETS_OFFLINE"))
    return offline("HF_DATASETS_OFFLINE");
  return offline("HF_HUB_OFFLINE") || offline("TRANSFORMERS_OFFLINE");
}

bool Launch::reads_caches(const Program& program) const {
  if (program.python)
    return true;
  if (program.kind != ProgramKind::program || is_plain_tool(program.name))
    return false;
  if (is_listed(base_name(program.name), python_programs()) ||
      std::ranges::any_of(walk.links(program), [](const ChainLink& link) {
        return link.launcher->tail == Tail::script || link.launcher->tail == Tail::itself;
      }))
    return true;
  // A console script of an environment: its first line names the interpreter.
  for (const std::string& path : paths_of(program, program.name))
    if (const std::string& start = stakes.start(path); !start.empty())
      return is_python_start(start);
  return false;
}

bool Launch::runs_no_python(const Program& program) const {
  if (program.python || program.kind != ProgramKind::program || reads_caches(program))
    return false;
  return is_plain_tool(program.name) ||
         std::ranges::any_of(paths_of(program, program.name), [&](const std::string& path) {
           return stakes.start(path).starts_with("\x7f"
                                                 "ELF");
         });
}

Decision keep(std::string flag, std::optional<std::size_t> index, std::string value, CacheClass cache_class,
              std::string reason) {
  return {.flag = std::move(flag),
          .index = index,
          .from = std::move(value),
          .cache_class = cache_class,
          .reason = std::move(reason)};
}

void rest_on(Decision& decision, const std::string& directory, const std::string& shared_path) {
  decision.directory = directory;
  decision.stands_for = normalize_path(shared_path);
}

std::optional<Decision> set_variable(const Launch& launch, const Program& program, const std::string& name,
                                     const std::string& value, bool own) {
  Decision decision{.flag = name, .from = launch.variable(program, name), .to = value};
  if (decision.from == value)
    return std::nullopt;
  if (const Assignment* word = program.assignment_of(name)) {
    decision.action = Action::rewrite;
    decision.index = word->index;
    decision.from = word->value;
    decision.edits = {{word->index, false, word->value_begin, word->value_begin + word->value.size(), value}};
    return decision;
  }
  decision.action = Action::set;
  decision.variable = true;
  const Setting& setting = launch.setting;
  const bool around =
      !setting.in_text || (setting.outside && !setting.assigned.contains(name) && (setting.alone || !own));
  if (around)
    decision.kind = ChangeKind::environment;
  else
    decision.edits = {{0, false, 0, 0, "", {name + "=" + value}}}; // in front of the command, whatever it begins with
  return decision;
}

} // namespace sharefs::cachefix
