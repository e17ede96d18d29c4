#include "cachefix/sanitize.hpp"

#include "base/text.hpp"
#include "cachefix/draft.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

bool switched_off(const Facts& facts) {
  return std::find(facts.environment.begin(), facts.environment.end(), "SHAREFS_CACHEFIX=0") != facts.environment.end();
}

void no_local_directory(Draft& draft) {
  draft.diagnose(Severity::error, "SF405", "caches.local",
                 "no directory on this host's own disks can hold the caches: " + draft.facts.local->problem,
                 "run `install -d -m 1777 /var/cache/sharefs` as root, or set caches.local in sharefs.yaml");
}

} // namespace

const char* to_string(ChangeKind kind) {
  switch (kind) {
  case ChangeKind::argument:
    return "argument";
  case ChangeKind::environment:
    return "environment";
  case ChangeKind::file:
    return "file";
  }
  return "argument";
}

const char* to_string(ChangeAction action) {
  switch (action) {
  case ChangeAction::rewrite:
    return "rewrite";
  case ChangeAction::drop:
    return "drop";
  case ChangeAction::set:
    return "set";
  case ChangeAction::unset:
    return "unset";
  }
  return "rewrite";
}

Sanitized sanitize(const Argv& argv, const Facts& facts, const Rules& rules) {
  Draft draft(argv, facts, rules);
  draft.out.argv = argv;
  const Walk walk = cachefix::walk(argv, facts.directory);
  for (const ChainLink& link : walk.chain)
    draft.out.chain.emplace_back(link.name, link.index);
  std::vector<const Framework*> known;
  for (const Program& program : walk.programs) {
    known.push_back(framework_of(program, argv));
    if (program.kind != ProgramKind::shell)
      draft.out.scripts.push_back(
          {program.index, program.name, known.back() == nullptr ? "" : std::string(known.back()->name)});
  }
  draft.out.understood = walk.understood;
  if (!rules.enabled || switched_off(facts))
    return std::move(draft.out);
  draft.out.diagnoses = walk.problems;
  if (!walk.understood)
    return std::move(draft.out);
  for (std::size_t i = 0; i < walk.programs.size(); ++i)
    sanitize_flags(draft, walk, walk.programs[i], known[i]);
  for (const Program& program : walk.programs)
    sanitize_variables(draft, walk, program);
  draft.out.argv = draft.final_argv();
  if (facts.local && facts.local->directory.empty())
    no_local_directory(draft);
  else if (facts.local && facts.local->fallback && !draft.out.directories.empty())
    draft.diagnose(Severity::info, "SF414", facts.local->directory,
                   "is used for the caches, because " + facts.local->problem,
                   "run `install -d -m 1777 /var/cache/sharefs` as root");
  return std::move(draft.out);
}

} // namespace sharefs::cachefix
