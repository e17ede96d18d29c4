#include "cachefix/launch.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace sharefs::cachefix {
namespace {

/// True if a variable with this value is switched on, as datasets/config.py and huggingface_hub/constants.py read it.
bool is_on(std::string value) {
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  return is_listed(value, "1 on yes true");
}

} // namespace

bool is_python_start(const std::string& start) {
  return start.starts_with("#!") && start.substr(0, start.find('\n')).find("python") != std::string::npos;
}

std::optional<std::string> Launch::variable(const Program& program, std::string_view name) const {
  std::string value;
  if (const Assignment* own = program.assignment_of(name))
    value = own->value;
  else if (const auto entry = environment.find(name); entry != environment.end() && !program.takes_away(name))
    value = entry->second;
  return value.empty() ? std::nullopt : std::optional(value);
}

Environment Launch::all_variables(const Program& program) const {
  Environment all = environment;
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

std::optional<std::string> Launch::find_shared_path(const Program& program, const std::string& value) const {
  auto path = resolve_path(program, value);
  return path && facts.is_shared(*path) ? path : std::nullopt;
}

std::vector<std::string> Launch::find_paths(const Program& program, const std::string& command,
                                            const std::string& if_no_path) const {
  std::vector<std::string> paths;
  if (command.find('/') != std::string::npos) {
    if (auto path = resolve_path(program, command)) // a URL has no path
      paths.push_back(*std::move(path));
    return paths;
  }
  for (const std::string& directory : split(variable(program, "PATH").value_or(if_no_path), ':'))
    if (directory.starts_with('/'))
      paths.push_back(join_path(directory, command));
  return paths;
}

std::string Launch::read_start(const Program& program) const {
  const bool file = program.kind == ProgramKind::file;
  const auto given = file ? resolve_path(program, program.name) : std::nullopt;
  for (const std::string& path : given ? std::vector{*given} : find_paths(program, program.name))
    if (const std::string& first = facts.find(path, PathFact::start).content; !first.empty())
      return first;
  return {};
}

std::string Launch::local_for(const std::string& shared_path, Holds holds) const {
  const std::string& root = facts.local(holds).directory;
  return root.empty() ? root : root + "/" + cache_key(shared_path);
}

bool Launch::is_offline(const Program& program) const {
  return any_word(words_of("offline"), ' ',
                  [&](std::string_view name) { return is_on(variable(program, name).value_or("")); });
}

bool Launch::reads_caches(const Program& program) const {
  if (program.python)
    return true;
  if (program.kind != ProgramKind::program || is_plain_tool(program))
    return false;
  const bool launched = std::ranges::any_of(walk.links(program),
                                            [](const ChainLink& link) { return link.launcher->tail == Tail::script; });
  // The first line of a console script in an environment names Python as its interpreter.
  return launched || is_python_start(read_start(program));
}

bool Launch::runs_no_python(const Program& program) const {
  if (program.python || program.kind != ProgramKind::program || reads_caches(program))
    return false;
  return is_plain_tool(program) || read_start(program).starts_with("\x7f"
                                                                   "ELF");
}

bool Launch::is_isolated(const Program& program) const {
  return std::ranges::any_of(walk.links(program),
                             [](const ChainLink& link) { return !isolating_option(link).empty(); });
}

bool Launch::is_guarded(const Program& program) const {
  return rules.guard && !is_isolated(program) && variable(program, "SHAREFS_GUARD") != "0" &&
         !runs_no_python(program) && can_carry(*this, program);
}

Decision keep(std::string flag, std::optional<std::size_t> index, std::string value, CacheClass cache_class,
              std::string reason) {
  return {.flag = std::move(flag),
          .index = index,
          .from = std::move(value),
          .cache_class = cache_class,
          .reason = std::move(reason)};
}

std::string add_lock_note(const Launch& launch, const std::string& reason, const std::string& path) {
  return launch.facts.find(path).lock_scope == sys::LockScope::same_name
             ? reason + " (file locks do not exclude other hosts there: one has the name of this host, see SF247)"
             : reason;
}

Decision guard_cache(const Launch& launch, const std::string& name, std::optional<std::size_t> index,
                     const std::string& value, const std::string& path) {
  const std::string& build = launch.rules.guard->build;
  const LocalRoot& root = launch.facts.local();
  const bool unique = build == "unique" || root.directory.empty() || root.memory;
  Decision decision{.action = Action::guard,
                    .flag = name,
                    .index = index,
                    .from = value,
                    .cache_class = CacheClass::mixed,
                    .rule = "guard",
                    .stands_for = normalize_path(path)};
  if (!unique)
    decision.to = launch.local_for(path);
  const std::string what = name == "HF_MODULES_CACHE" ? "modules" : "datasets";
  const std::string reason =
      what + (unique               ? " are built there under a name of their own; models stay"
              : build == "publish" ? " are built on the node's own disk and copied there complete; models stay"
                                   : " are built on the node's own disk; models stay");
  decision.reason = add_lock_note(launch, reason, path);
  return decision;
}

std::optional<Decision> set_variable(const Launch& launch, const Program& program, const std::string& name,
                                     const std::string& value) {
  Decision decision{.flag = name, .from = launch.variable(program, name), .to = value, .variable = true};
  if (decision.from == value)
    return std::nullopt;
  if (const Assignment* word = program.assignment_of(name)) {
    decision.action = Action::rewrite;
    decision.index = word->index;
    decision.from = word->value;
    decision.edits = {{word->index, word->value_begin, word->value_begin + word->value.size(), value}};
    return decision;
  }
  // The variable has this value already, and cannot reach the program (`srun --export=NONE`): a change would not help.
  if (const auto set = launch.environment.find(name);
      set != launch.environment.end() && set->second == value && !can_carry(launch, program))
    return std::nullopt;
  decision.action = Action::set;
  return decision;
}

Decision report_no_local_directory(const Launch& launch, bool named, Holds holds) {
  const LocalRoot& root = launch.facts.local(holds);
  const auto severity = named && !root.taken ? Severity::error : Severity::warning;
  auto found = diagnose(root, severity).front();
  if (holds == Holds::code || severity == Severity::warning)
    found.message += "; they were left where they are";
  return warning(found.code, found.subject, std::move(found.message), std::move(found.hint), severity);
}

bool locks_are_enough(const Launch& launch, const std::string& path) {
  return launch.rules.when == When::racy && launch.facts.find(path).lock_scope == sys::LockScope::all_hosts;
}

} // namespace sharefs::cachefix
