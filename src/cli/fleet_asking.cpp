#include "cli/on_nodes.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/fleet_progress.hpp"
#include "fleet/scratch.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace sharefs::cli {

namespace {

template <class Number>
Result<Number> number_option(const Arguments& arguments, std::string_view name, Number least, Number most,
                             Number fallback) {
  const auto text = arguments.value(name).value_or(std::to_string(fallback));
  const auto number = parse_number<Number>(text);
  if (!number || *number < least || *number > most)
    return not_understood(name, text, fmt::format("a number from {} to {}", least, most));
  return *number;
}

} // namespace

Result<void> choose_engine(Context& context, const std::string& name, fleet::Settings& settings) {
  settings.path = fleet::path_for_engines(context.system, context.environment("PATH").value_or(""));
  TRY_ASSIGN(const auto engine, fleet::choose_engine(context.system, name, settings.path));
  if (engine->joins_streams && !context.environment("SLURM_JOB_ID"))
    return fail(ErrorCode::usage,
                "srun reaches nodes inside an allocation of Slurm only: elsewhere it would queue a job",
                "call it by `salloc -N... sharefs --on ...`, or leave --engine out");
  settings.engine = engine;
  return {};
}

Result<fleet::Settings> settings_of(Context& context, const Arguments& arguments, bool by_ssh) {
  fleet::Settings settings;
  TRY(choose_engine(context, arguments.value("engine").value_or(""), settings));
  if (by_ssh && settings.engine->joins_streams)
    return fail(ErrorCode::usage,
                fmt::format("the engine `{}` starts tasks on the nodes, and this works by ssh", settings.engine->name),
                "leave --engine out");
  TRY_ASSIGN(const auto at_a_time, number_option<unsigned>(arguments, "fanout", 1, 1024, settings.at_a_time));
  TRY_ASSIGN(const auto canary,
             number_option<std::size_t>(arguments, "canary", 0, fleet::k_most_nodes, settings.canary));
  TRY_ASSIGN(const auto command, arguments.duration("node-deadline"));
  TRY_ASSIGN(const auto most, most_failures_of(arguments));
  constexpr std::chrono::seconds k_least{1};
  settings.at_a_time = at_a_time;
  settings.canary = canary;
  settings.most_failures = most;
  settings.command = std::max(std::chrono::duration_cast<std::chrono::seconds>(command), k_least);
  constexpr std::chrono::minutes k_check_deadline{2};
  settings.check_deadline =
      arguments.value("node-deadline") == k_default_deadline ? k_check_deadline : settings.command;
  return settings;
}

Argv words_for_nodes(const Argv& argv) {
  Argv given;
  for (const auto& word : std::span(argv).subspan(1))
    if (word.size() > 2 && word[0] == '-' && word[1] != '-') // "-nv" is "-n -v", because no short option has a value
      for (const char letter : word.substr(1))
        given.push_back({'-', letter});
    else
      given.push_back(word);
  // Behind `--` stand names, and none of these commands has names that begin with `-`.
  const std::vector<std::string> only_here{"--json", "--yes", "-y", "--quiet", "-q", "--"};
  Argv words;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto name = given[i].substr(0, given[i].find('='));
    if (std::ranges::find(fleet_options(), name, &OptionSpec::names) != fleet_options().end())
      i += name == given[i] ? 1 : 0; // its value is the next word
    else if (!contains(only_here, given[i]))
      words.push_back(given[i]);
  }
  return words;
}

Result<fleet::Run> run_with_progress(Context& context, const std::string& directory, const fleet::Request& request,
                                     const std::string& what) {
  sys::install_interrupt_handlers();
  FleetProgress progress(context, what, request.nodes.size());
  const fleet::Listener listener{
      .answered = [&](const fleet::Outcome& outcome) { progress.add_answer(outcome.node, to_string(outcome.state)); },
      .progressed = [&](const std::string& node, const std::string& line) { progress.add_line(node, line); }};
  auto run = fleet::run_on_nodes(context.system, directory, request, listener);
  if (run && run->stopped && !run->problem && !run->interrupted)
    context.console.message(
        "stopped: too many nodes failed, and the others were not started (--max-failures, --canary)");
  if (!run || !run->problem)
    return run;
  const auto is_known = [](const fleet::Outcome& outcome) { return outcome.state != fleet::State::not_tried; };
  if (std::ranges::none_of(run->outcomes, is_known))
    return fail(*run->problem);
  context.console.error(*run->problem);
  return run;
}

Result<fleet::Run> ask_once(Context& context, fleet::Request request, const std::string& what) {
  TRY_ASSIGN(const auto parent, fleet_directory(context));
  TRY_ASSIGN(const auto scratch, fleet::Scratch::make(context.system.files(), parent));
  request.keeps_record = false;
  return run_with_progress(context, scratch.path(), request, what);
}

Result<fleet::Run> ask(Context& context, fleet::Request request, const Argv& further) {
  request.at_once = true;
  request.settings.command = request.settings.check_deadline;
  request.asking.words.insert(request.asking.words.end(), further.begin(), further.end());
  return ask_once(context, std::move(request), "asking nodes");
}

} // namespace sharefs::cli
