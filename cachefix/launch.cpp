#include "cachefix/launch.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace sharefs::cachefix {

bool is_python_start(const std::string& start) {
  return start.starts_with("#!") && start.substr(0, start.find('\n')).find("python") != std::string::npos;
}

std::optional<std::string> Launch::variable(const Program& program, std::string_view name) const {
  std::string value;
  if (const Assignment* own = program.assignment_of(name))
    value = own->value;
  else if (const auto entry = start.environment.find(name);
           entry != start.environment.end() && !program.takes_away(name))
    value = entry->second;
  return value.empty() ? std::nullopt : std::optional(value);
}

Environment Launch::all_variables(const Program& program) const {
  Environment all = start.environment;
  for (const Assignment& one : program.assigned)
    all[one.name] = one.value;
  std::erase_if(all, [&](const auto& one) { return !variable(program, one.first); });
  return all;
}

std::string Launch::home(const Program& program) const {
  const auto home = variable(program, "HOME");
  return home && home->starts_with('/') ? *home : start.home;
}

std::optional<std::string> Launch::resolve_path(const Program& program, const std::string& value) const {
  if (value.empty() || value.find("://") != std::string::npos || value.find('\0') != std::string::npos)
    return std::nullopt;
  if (value.front() == '/')
    return value;
  if (value == "~" || value.starts_with("~/")) {
    const std::string base = home(program);
    return base.empty() ? std::nullopt : std::optional<std::string>(base + value.substr(1));
  }
  return program.directory == "/" ? "/" + value : program.directory + "/" + value;
}

std::string Launch::find_file(const Program& program, const std::string& name, bool here) const {
  const bool is_path = name.find('/') != std::string::npos, has_suffix = name.find('.') != std::string::npos;
  std::vector<std::string> paths;
  if (const auto own = resolve_path(program, name); own && (here || is_path)) // a URL has no path
    paths.push_back(*own);
  if (!is_path && !(here && has_suffix))
    for (const std::string& directory : split(variable(program, "PATH").value_or("/usr/local/bin:/usr/bin:/bin"), ':'))
      if (directory.starts_with('/'))
        paths.push_back(join_path(directory, name));
  const auto found = std::ranges::find_if(
      paths, [&](const std::string& path) { return !facts.find(path, PathFact::start).content.empty(); });
  return found == paths.end() ? "" : *found;
}

std::string Launch::read_start(const Program& program) const {
  const std::string path = find_file(program, program.name, program.kind == ProgramKind::file);
  return path.empty() ? path : facts.find(path, PathFact::start).content;
}

bool Launch::reads_caches(const Program& program) const {
  if (program.python)
    return true;
  if (program.kind != ProgramKind::program || is_plain_tool(program))
    return false;
  const bool launched =
      std::ranges::any_of(program.chain, [](const ChainLink* link) { return link->launcher->tail == Tail::script; });
  // The first line of a console script in an environment names Python as its interpreter.
  return launched || is_python_start(read_start(program));
}

bool Launch::runs_no_python(const Program& program) const {
  if (program.python || program.kind != ProgramKind::program || reads_caches(program))
    return false;
  return is_plain_tool(program) || read_start(program).starts_with("\x7f"
                                                                   "ELF");
}

bool is_isolated(const Program& program) {
  return std::ranges::any_of(program.chain,
                             [](const ChainLink* link) { return link->options.last(Means::isolates) != nullptr; });
}

bool Launch::is_guarded(const Program& program) const {
  return rules.guard && !is_isolated(program) && variable(program, "SHAREFS_GUARD") != "0" &&
         !runs_no_python(program) && can_carry(*this, program);
}

Decision rewrite_value(const Assignment& word, const std::string& to) {
  return {.action = Action::rewrite,
          .flag = word.name,
          .index = word.index,
          .from = word.value,
          .to = to,
          .edits = {{word.index, word.value_begin, word.value_begin + word.value.size(), to}}};
}

std::optional<Decision> set_variable(const Launch& launch, const Program& program, const std::string& name,
                                     const std::string& value) {
  const auto now = launch.variable(program, name);
  if (now == value)
    return std::nullopt;
  Decision decision{.action = Action::set, .flag = name, .from = now, .to = value};
  if (const Assignment* word = program.assignment_of(name)) {
    decision = rewrite_value(*word, value);
  } else if (const auto set = launch.start.environment.find(name);
             set != launch.start.environment.end() && set->second == value && !can_carry(launch, program)) {
    // The variable has this value already, and cannot reach the program (`srun --export=NONE`): a change would not
    // help.
    return std::nullopt;
  }
  decision.variable = true;
  return decision;
}

} // namespace sharefs::cachefix
