#include "cachefix/files/python_source.hpp"

#include <nlohmann/json.hpp>

namespace sharefs::cachefix {

extern const char k_source_facts[]; // cachefix/files/source_facts/*.py, by CMake

namespace {

/// Imports and two places, whatever the source is.
constexpr std::size_t k_longest_answer = 256U << 10U;

} // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SourceFacts, imports, hf_arguments, definitions, optional, dataset_calls,
                                   dataset_calls_with, model_calls, model_calls_with, other_use, outputs, escapes,
                                   own_layout, caches)

sys::Command source_facts_command(const std::string& source, std::chrono::milliseconds deadline) {
  sys::Command command;
  // The system's own, isolated: neither what the launch would run, nor the working directory, nor the user's or the
  // site's packages, nor PYTHON* of the environment. A syntax that is newer than it is not understood.
  command.argv = {"python3", "-I", "-S", "-E", "-c", k_source_facts};
  command.input = source;
  command.deadline = deadline;
  command.output_limit = k_longest_answer;
  return command;
}

SourceFacts parse_source_facts(const std::string& printed) {
  try {
    auto facts = nlohmann::json::parse(printed).get<SourceFacts>();
    facts.parsed = true;
    return facts;
  } catch (const nlohmann::json::exception&) { // cut off, or not ours
    return {};
  }
}

} // namespace sharefs::cachefix
