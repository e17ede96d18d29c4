#include "cachefix/decide.hpp"

namespace sharefs::cachefix {

Result<Decision> decide(sys::System& system, const Argv& argv, std::vector<std::string> environment,
                        std::string directory, LocalChoice local, const Rules& rules) {
  // Each round answers what the one before could not know to ask; a handful of rounds is the most that rules need.
  constexpr int k_most_rounds = 32;
  Prober prober(system, std::move(local));
  Facts facts = prober.begin(std::move(environment), std::move(directory));
  Sanitized sanitized = sanitize(argv, facts, rules);
  for (int round = 0; round < k_most_rounds && !sanitized.questions.empty(); ++round) {
    if (auto answered = prober.answer(sanitized.questions, facts); !answered)
      return fail(answered.error());
    sanitized = sanitize(argv, facts, rules);
  }
  if (!sanitized.questions.empty())
    return fail(ErrorCode::failed, "the command line asks for more facts than sharefs looks up",
                "run it with SHAREFS_CACHEFIX=0 and report this");
  return Decision{std::move(sanitized), std::move(facts)};
}

} // namespace sharefs::cachefix
