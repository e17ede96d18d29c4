// Shell text and script files: what is around them, and where their changes go.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/launch.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

/// The environment that a shell gets, after the changes to the words in front of it.
Environment environment_in(const Launch& launch, const Program& program, const Decisions& so_far) {
  Environment environment = launch.setting.environment;
  std::erase_if(environment, [&](const auto& entry) { return program.takes_away(entry.first); });
  for (const Assignment& one : program.assigned) {
    const auto changed = std::ranges::find_if(so_far, [&](const Decision& decision) {
      return decision.action == Action::rewrite && decision.flag == one.name && decision.index == one.index;
    });
    environment[one.name] = changed == so_far.end() ? one.value : *changed->to;
  }
  return environment;
}

} // namespace

std::optional<Decisions> decide_shell(const Launch& launch, const Program& program, const Decisions& so_far,
                                      std::vector<ScriptFound>& scripts) {
  const ChainLink* const starter = program.chain.empty() ? nullptr : &launch.walk.chain[program.chain.back()];
  const bool by_shell = starter != nullptr && !program.python &&
                        (starter->launcher->tail == Tail::shell || starter->launcher->tail == Tail::batch);
  const bool script = by_shell || program.name.ends_with(".sh") || program.name.ends_with(".bash") ||
                      program.name.ends_with(".slurm") || program.name.ends_with(".sbatch");
  const bool is_text = program.kind == ProgramKind::shell;
  if (program.python || (!is_text && (!script || is_unknown(program.name))))
    return std::nullopt;
  Setting setting = launch.setting;
  setting.directory = program.directory;
  setting.environment = environment_in(launch, program, so_far);
  setting.outside = can_carry(launch, program) && (!launch.setting.in_text || launch.setting.outside);
  setting.alone = launch.setting.alone && launch.walk.has_one_program();
  setting.elsewhere = runs_elsewhere(launch, program);
  setting.unknown_nodes = setting.unknown_nodes || starts_later(launch, program);
  ++setting.depth;
  for (const Assignment& one : program.assigned)
    setting.assigned.insert(one.name);
  ShellVariables arguments;
  const std::size_t first = std::min(program.index + (is_text ? 2 : 1), program.tail); // bash -c TEXT NAME ARG...
  const auto words = std::span(launch.argv).subspan(first, program.tail - first);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (!is_unknown(words[i]))
      arguments[std::to_string(i + 1)] = words[i];
  if (is_text && !words.empty()) // of a script file its words were said already
    arguments["@"] = join({words.begin(), words.end()}, " ");
  TextPlace place;
  if (is_text) {
    place.index = program.index;
    place.editable = launch.setting.editable;
    place.subject = starter == nullptr ? "shell text" : starter->name;
    TextFound found =
        judge_text(program.name, place, std::move(setting), launch.stakes, launch.rules, std::move(arguments));
    scripts.insert(scripts.end(), found.scripts.begin(), found.scripts.end());
    if (found.text != program.name) {
      const std::size_t end = launch.argv[program.index].size();
      for (Decision& decision : found.decisions)
        if (decision.is_change() && decision.kind != ChangeKind::environment) {
          decision.edits = {{program.index, false, end - program.name.size(), end, found.text}};
          break;
        }
    }
    return std::move(found.decisions);
  }
  const auto path = launch.absolute(program, program.name);
  if (path && by_shell && launch.setting.in_text && launch.stakes.place(*path).kind == sys::EntryKind::missing)
    return Decisions{warning("SF403", program.name, "the script is not there now, so nobody knows what it starts",
                             "make it before, or put `sharefs run --` in front of the program in it")};
  if (!path || !launch.stakes.text(*path))
    return std::nullopt;
  place.subject = program.name;
  place.editable = false;
  return judge_text(*launch.stakes.text(*path), place, std::move(setting), launch.stakes, launch.rules,
                    std::move(arguments))
      .decisions;
}

ScriptResult sanitize_script(const std::string& file, const std::string& text, const Start& start, Stakes& stakes,
                             const Rules& rules) {
  Setting setting = setting_of(start);
  setting.can_write = false;
  const TextPlace place{std::nullopt, file, true};
  TextFound found = judge_text(text, place, setting, stakes, rules);
  ScriptResult result;
  if (stakes.budget().is_spent())
    return {text, unread({"bash", file}, file, stakes.budget())};
  result.text = std::move(found.text);
  result.sanitized = assemble({"bash", file}, std::move(found.decisions), stakes);
  result.sanitized.scripts = std::move(found.scripts);
  std::string exports;
  for (const auto& [name, value] : result.sanitized.set)
    exports += "export " + name + "=" + shell_quote(value) + "\n";
  // Nothing in front of the first statement is ever changed, so the offset holds in the new text too.
  result.text.insert(std::min(found.first_statement, result.text.size()), exports);
  return result;
}

} // namespace sharefs::cachefix
