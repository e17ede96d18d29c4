#include "cachefix/sanitize.hpp"

#include "base/text.hpp"
#include "cachefix/draft.hpp"
#include "cachefix/hosts.hpp"
#include "cachefix/shell.hpp"
#include "cachefix/shell_sanitize.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

bool switched_off(const Facts& facts) {
  return std::find(facts.environment.begin(), facts.environment.end(), "SHAREFS_CACHEFIX=0") != facts.environment.end();
}

} // namespace

const char* to_string(ChangeKind kind) {
  static constexpr const char* k_names[] = {"argument", "environment", "file"};
  return k_names[static_cast<std::size_t>(kind)];
}

const char* to_string(ChangeAction action) {
  static constexpr const char* k_names[] = {"rewrite", "drop", "set", "unset"};
  return k_names[static_cast<std::size_t>(action)];
}

void sanitize_draft(Draft& draft) {
  const Walk walk = cachefix::walk(draft.argv, draft.facts.directory);
  draft.out.argv = draft.argv;
  for (const ChainLink& link : walk.chain)
    draft.out.chain.emplace_back(link.name, link.index);
  draft.out.understood = walk.understood;
  std::vector<const Framework*> known;
  for (const Program& program : walk.programs) {
    known.push_back(framework_of(program, draft.argv));
    if (program.kind != ProgramKind::shell)
      draft.out.scripts.push_back(
          {program.index, program.name, known.back() == nullptr ? "" : std::string(known.back()->name)});
  }
  if (!draft.rules.enabled || switched_off(draft.facts))
    return;
  draft.out.diagnoses = walk.problems;
  if (!walk.understood)
    return;
  for (std::size_t i = 0; i < walk.programs.size(); ++i) {
    sanitize_flags(draft, walk, walk.programs[i], known[i]);
    sanitize_shell_program(draft, walk, walk.programs[i]);
  }
  for (const Program& program : walk.programs)
    sanitize_variables(draft, walk, program);
  propagate(draft, walk);
  if (!draft.out.directories.empty())
    draft.out.hosts = hosts_of(draft, walk);
  draft.out.argv = draft.final_argv();
}

/// `bash -c` and `sbatch --wrap` are looked into and changed; script files are looked into only: the file stays as it
/// is.
void sanitize_shell_program(Draft& draft, const Walk& walk, const Program& program) {
  const bool script = program.name.ends_with(".sh") || program.name.ends_with(".bash") ||
                      program.name.ends_with(".slurm") || program.name.ends_with(".sbatch");
  const bool by_shell = !program.chain.empty() && !program.python &&
                        (walk.chain[program.chain.back()].launcher->tail == Tail::shell ||
                         walk.chain[program.chain.back()].launcher->tail == Tail::batch);
  ShellScope scope;
  scope.directory = program.directory;
  scope.depth = draft.depth;
  scope.elsewhere = runs_elsewhere(draft, walk, program);
  if (program.kind == ProgramKind::shell) {
    const auto carried = can_carry(draft, walk, program);
    scope.carries = carried.value_or(false);
    scope.alone = draft.alone && walk.has_one_program();
    scope.index = program.index;
    scope.subject = program.chain.empty() ? "shell text" : walk.chain[program.chain.back()].name;
    std::vector<ScriptFound> programs;
    const auto changed = sanitize_shell(draft, program.name, scope, programs);
    draft.out.scripts.insert(draft.out.scripts.end(), programs.begin(), programs.end());
    if (changed) {
      const std::string& word = draft.argv[program.index];
      draft.replace(program.index, word.size() - program.name.size(), program.name.size(), *changed);
    }
    return;
  }
  if (program.python || (!by_shell && !script) || program.name.find(k_unknown_part) != std::string::npos ||
      !draft.any_shared())
    return;
  const auto path = draft.absolute(program, program.name);
  const auto* text = path ? draft.text(*path) : nullptr;
  if (text == nullptr || !*text)
    return;
  Draft inner(draft.argv, draft.facts, draft.rules);
  inner.depth = draft.depth;
  scope.subject = program.name;
  std::vector<ScriptFound> programs;
  (void)sanitize_shell(inner, **text, scope, programs);
  draft.out.questions.merge(std::move(inner.out.questions));
  for (const Change& change : inner.out.changes)
    if (change.kind == ChangeKind::argument && change.action != ChangeAction::set)
      draft.diagnose(Severity::warning, "SF415", program.name,
                     "`" + change.flag + "` in it lies on shared storage; the file was not changed",
                     "run `sharefs cachefix script " + shell_quote(program.name) +
                         " --write COPY --yes` and start the copy, or put `sharefs run --` into it");
}

Sanitized sanitize(const Argv& argv, const Facts& facts, const Rules& rules) {
  Draft draft(argv, facts, rules);
  sanitize_draft(draft);
  if (facts.local && facts.local->directory.empty())
    draft.diagnose(Severity::error, "SF405", "caches.local",
                   "no directory on this host's own disks can hold the caches: " + facts.local->problem,
                   facts.local->hint);
  else if (facts.local && !facts.local->problem.empty() && !draft.out.directories.empty())
    draft.diagnose(Severity::info, "SF414", facts.local->directory, "holds the caches, because " + facts.local->problem,
                   facts.local->hint);
  return std::move(draft.out);
}

} // namespace sharefs::cachefix
