#include "cachefix/files/python_source.hpp"

#include <nlohmann/json.hpp>

namespace sharefs::cachefix {

extern const char k_source_facts[]; // cachefix/files/source_facts/*.py, by CMake

namespace {

/// Imports and two places, whatever the source is.
constexpr std::size_t k_longest_answer = 256U << 10U;

} // namespace

sys::Command source_facts_command(const std::string& source, const std::string& interpreter,
                                  std::chrono::milliseconds deadline) {
  sys::Command command;
  // Isolated: neither the working directory, nor the user's or the site's packages, nor PYTHON* of the environment.
  command.argv = {interpreter, "-I", "-S", "-E", "-c", k_source_facts};
  command.user_path = true;
  command.input = source;
  command.deadline = deadline;
  command.output_limit = k_longest_answer;
  return command;
}

SourceFacts parse_source_facts(const std::string& printed) {
  SourceFacts facts;
  try {
    const auto answer = nlohmann::json::parse(printed);
    answer.at("imports").get_to(facts.imports);
    answer.at("hf_arguments").get_to(facts.hf_arguments);
    answer.at("definitions").get_to(facts.definitions);
    answer.at("optional").get_to(facts.optional);
    answer.at("dataset_calls").get_to(facts.dataset_calls);
    answer.at("dataset_calls_with").get_to(facts.dataset_calls_with);
    answer.at("model_calls").get_to(facts.model_calls);
    answer.at("model_calls_with").get_to(facts.model_calls_with);
    answer.at("other_use").get_to(facts.other_use);
    answer.at("outputs").get_to(facts.outputs);
    answer.at("escapes").get_to(facts.escapes);
    facts.parsed = true;
    return facts;
  } catch (const nlohmann::json::exception&) { // cut off, or not ours
    return {};
  }
}

} // namespace sharefs::cachefix
