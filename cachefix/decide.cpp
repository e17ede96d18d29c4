#include "cachefix/decide.hpp"

namespace sharefs::cachefix {
namespace {

const Questions& questions_of(const Sanitized& found) {
  return found.questions;
}
const Questions& questions_of(const ScriptResult& found) {
  return found.sanitized.questions;
}

/// `once` decides by the facts so far; what it asks is answered, until it asks no more.
template <class Once>
auto settle(sys::System& system, const LocalChoice& local, Facts& facts, const Once& once) -> Result<decltype(once())> {
  // Each round answers what the one before could not know to ask; a handful of rounds is the most that rules need.
  constexpr int k_most_rounds = 32;
  for (int round = 0; round <= k_most_rounds; ++round) {
    auto found = once();
    if (questions_of(found).empty())
      return found;
    if (auto answered = answer(system, local, questions_of(found), facts); !answered)
      return fail(answered.error());
  }
  return fail(ErrorCode::failed, "the command line asks for more facts than sharefs looks up",
              "run it with SHAREFS_CACHEFIX=0 and report this");
}

} // namespace

Result<Decision> decide(sys::System& system, const Argv& argv, std::vector<std::string> environment,
                        std::string directory, const LocalChoice& local, const Rules& rules) {
  Facts facts = first_facts(system, std::move(environment), std::move(directory));
  auto found = settle(system, local, facts, [&] { return sanitize(argv, facts, rules); });
  if (!found)
    return fail(found.error());
  return Decision{*std::move(found), std::move(facts)};
}

Result<ScriptResult> decide_script(sys::System& system, const std::string& file, const std::string& text,
                                   std::vector<std::string> environment, std::string directory,
                                   const LocalChoice& local, const Rules& rules) {
  Facts facts = first_facts(system, std::move(environment), std::move(directory));
  return settle(system, local, facts, [&] { return sanitize_script(file, text, facts, rules); });
}

} // namespace sharefs::cachefix
