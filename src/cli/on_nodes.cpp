#include "cli/on_nodes.hpp"

#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/execute.hpp"
#include "cli/fleet_progress.hpp"
#include "fleet/scratch.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace sharefs::cli {

namespace {

using fleet::Outcome;
using fleet::State;

template <class Number>
Result<Number> number_option(const Arguments& arguments, std::string_view name, Number least, Number most,
                             Number fallback) {
  const auto text = arguments.value(name).value_or(std::to_string(fallback));
  const auto number = parse_number<Number>(text);
  if (!number || *number < least || *number > most)
    return not_understood(name, text, fmt::format("a number from {} to {}", least, most));
  return *number;
}

/// Reads the options of the command line and finds an installed engine. Error `usage` for srun, if ssh is needed.
Result<fleet::Settings> settings_of(Context& context, const Arguments& arguments, bool by_ssh = false) {
  fleet::Settings settings;
  TRY(choose_engine(context, arguments.value("engine").value_or(""), settings));
  if (by_ssh && settings.engine->joins_streams)
    return fail(ErrorCode::usage,
                fmt::format("the engine `{}` starts tasks on the nodes, and this works by ssh", settings.engine->name),
                "leave --engine out");
  TRY_ASSIGN(settings.at_a_time, number_option<unsigned>(arguments, "fanout", 1, 1024, settings.at_a_time));
  TRY_ASSIGN(settings.canary, number_option<std::size_t>(arguments, "canary", 0, fleet::k_most_nodes, settings.canary));
  TRY_ASSIGN(settings.most_failures, most_failures_of(arguments));
  TRY_ASSIGN(settings.command, node_deadline(arguments));
  if (arguments.value("node-deadline"))
    settings.check_deadline = settings.command;
  return settings;
}

/// Returns the command line without the options that only this machine needs: those of the fleet, of consent, and of
/// the output. Relative paths become whole ones, because nodes work in another directory.
Argv words_for_nodes(const Context& context) {
  Argv given;
  for (const auto& word : std::span(context.argv).subspan(1))
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
    const bool is_config = name == "--config";
    if (is_config)
      words.insert(words.end(), {name, context.config_path()});
    if (is_config || std::ranges::find(fleet_options(), name, &OptionSpec::names) != fleet_options().end())
      i += name == given[i] ? 1 : 0;                                    // its value is the next word
    else if (given[i].starts_with("./") || given[i].starts_with("../")) // no name begins so
      words.push_back(normalize_path(given[i], context.host.working_directory));
    else if (!contains(only_here, given[i]))
      words.push_back(given[i]);
  }
  return words;
}

/// Runs the request, with progress on the terminal; its files are made in `directory`.
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

/// Runs the request without a record: its files are removed after the answer.
Result<fleet::Run> ask_once(Context& context, fleet::Request request, const std::string& what) {
  TRY_ASSIGN(const auto parent, fleet_directory(context));
  TRY_ASSIGN(const auto scratch, fleet::Scratch::make(context.system.files(), parent));
  request.keeps_record = false;
  return run_with_progress(context, scratch.path(), request, what);
}

/// Asks the nodes all at once, without a record, with the deadline of a check; `further` follows the arguments.
Result<fleet::Run> ask(Context& context, fleet::Request request, const Argv& further = {"--json"},
                       const std::string& what = "asking nodes") {
  request.at_once = true;
  request.settings.command = request.settings.check_deadline;
  request.asking.words.insert(request.asking.words.end(), further.begin(), further.end());
  return ask_once(context, std::move(request), what);
}

/// Prints how to continue a run and how to undo it.
void report_end(Context& context, const std::string& id, const fleet::Run& run, const std::vector<Outcome>& outcomes) {
  std::vector<std::string> open, begun;
  for (const auto& outcome : outcomes)
    if (!is_good(outcome.state)) {
      open.push_back(outcome.node);
      if (outcome.state != State::not_tried)
        begun.push_back(outcome.node);
    }
  if (run.interrupted)
    context.console.message(
        begun.empty() ? "interrupted"
                      : fmt::format("interrupted; it is not known whether these are done: {}", fleet::fold(begun)));
  if (!open.empty())
    context.console.message(fmt::format("`sharefs nodes resume {}` continues where it is not done", id));
  if (std::ranges::any_of(outcomes, &Outcome::can_be_undone))
    context.console.message(fmt::format("`sharefs --on all undo {}` takes it back", id));
}

/// Applies the change in order, with a record, under the lock for changes of many nodes.
Result<int> apply_on_nodes(Context& context, fleet::Request job) {
  TRY_ASSIGN(const auto directory, fleet_directory(context));
  // A copy that takes hours has a lock of its own, so that the nodes can be changed in other ways meanwhile.
  TRY_ASSIGN(const auto lock, lock_fleet(context, job.asking.from_here ? "from-here" : ""));
  TRY_ASSIGN(const auto id, new_record_id(context, directory));
  TRY_ASSIGN(const auto lease,
             job.asking.from_here ? LeaseOnServers::Taken() : LeaseOnServers::take(context, id, job.settings.command));
  auto recorded = job;
  recorded.nodes.insert(recorded.nodes.end(), job.failed_check.begin(), job.failed_check.end());
  TRY(begin_record(context, directory, id, recorded));
  job.asking.words.insert(job.asking.words.end(), {"--yes", "--json"});
  TRY_ASSIGN(auto run, run_with_progress(context, join_path(directory, id), job, "working on nodes"));
  context.envelope.fields["run"] = id;
  auto outcomes = std::move(job.before);
  outcomes.insert(outcomes.end(), run.outcomes.begin(), run.outcomes.end());
  show_outcomes(context, outcomes);
  report_end(context, id, run, outcomes);
  const int code = fleet::exit_code_of(outcomes);
  return run.interrupted ? k_exit_interrupted : run.problem && code == k_exit_ok ? k_exit_partly : code;
}

/// A client that can do nothing before its servers have changed is not a failure, if it has answered: it is asked again
/// after the servers.
void expect_servers(const fleet::Request& job, std::vector<Outcome>& answers) {
  const auto is_server = [&](const Outcome& outcome) {
    return std::ranges::find(job.nodes, outcome.node, &fleet::Node::name)->in(fleet::k_servers);
  };
  const bool servers_change = !job.servers_last && std::ranges::any_of(answers, [&](const Outcome& outcome) {
    return outcome.state == State::pending && is_server(outcome);
  });
  for (auto& outcome : answers)
    if (servers_change && outcome.state == State::failed && outcome.document.is_object() && !is_server(outcome)) {
      outcome.state = State::pending;
      outcome.why = "it is asked again after the servers: " + outcome.why;
    }
}

/// Asks all nodes for their plans and shows them; only nodes with something to do stay in the job. Returns a value if
/// the command ends here.
std::optional<Result<int>> plan_on_nodes(Context& context, fleet::Request& job) {
  TRY_ASSIGN(auto answers, ask(context, job, {"--check", "--json"}));
  if (answers.interrupted)
    return fail(ErrorCode::interrupted, "interrupted: nothing was changed");
  expect_servers(job, answers.outcomes);
  // Nodes about which nothing is asked are shown with the others.
  answers.outcomes.insert(answers.outcomes.end(), job.before.begin(), job.before.end());
  job.before.clear();
  for (const auto& outcome : answers.outcomes)
    if (outcome.state != State::pending)
      job.before.push_back(outcome);
  const auto all = job.nodes;
  if (auto ended = agree_on_plans(context, job.nodes, answers.outcomes, job.settings.most_failures))
    return ended;
  for (const auto& outcome : job.before)
    if (!is_good(outcome.state))
      job.failed_check.push_back(*std::ranges::find(all, outcome.node, &fleet::Node::name));
  return std::nullopt;
}

/// Error `config` if this machine is a server by one name and a client by another: its exports would go before the
/// clients have unmounted them.
Result<void> check_names_of_this_machine(Context& context, const std::vector<fleet::Node>& nodes) {
  const auto identity = context.system.identity();
  const fleet::Node *server = nullptr, *client = nullptr;
  for (const auto& node : nodes)
    if (fleet::is_here(identity, node))
      (node.in(fleet::k_servers) ? server : client) = &node;
  if (server == nullptr || client == nullptr)
    return {};
  return fail(ErrorCode::config,
              fmt::format("{}: the node {} and the server {} are this machine", client->origin.text(), client->name,
                          server->name),
              server->address.empty()
                  ? fmt::format("list it as `{}`, or leave it out: servers are nodes already", server->name)
                  : fmt::format("list it as `{{name: {}, address: {}}}`, or leave it out: servers are nodes already",
                                client->name, server->address));
}

/// Shows the plan, asks for consent, and applies it.
Result<int> change_nodes(Context& context, fleet::Request job) {
  TRY(check_names_of_this_machine(context, job.nodes));
  if (!context.flags.yes || context.flags.changes_nothing())
    if (const auto ended = plan_on_nodes(context, job))
      return *ended;
  return apply_on_nodes(context, std::move(job));
}

} // namespace

const std::vector<OptionSpec>& fleet_options() {
  static const std::vector<OptionSpec> k_options{
      {.names = "--on",
       .value = "NODES",
       .help = "do it on these nodes of sharefs.yaml: gpu[01-64], @GROUP, all, servers, clients, all!gpu07"},
      {.names = "--engine",
       .value = "NAME",
       .help = "the program that runs it on them: xargs (with ssh), clush, pdsh, srun"},
      {.names = "--fanout", .value = "N", .help = "how many at a time", .fallback = "64"},
      {.names = "--canary",
       .value = "N",
       .help = "try a change on this many nodes first, after the servers",
       .fallback = "1"},
      {.names = "--max-failures",
       .value = "N|P%",
       .help = "stop a change when more nodes than this fail or cannot be reached",
       .fallback = "3"},
      {.names = "--node-deadline",
       .value = "TIME",
       .help = "longest time on a node; without it 10min, and 2min for a command that changes nothing"},
  };
  return k_options;
}

std::vector<OptionSpec> with_fleet_options(std::vector<OptionSpec> own) {
  own.insert(own.end(), fleet_options().begin() + 1, fleet_options().end());
  return own;
}

Result<void> choose_engine(Context& context, const std::string& name, fleet::Settings& settings) {
  settings.path = fleet::path_for_engines(context.system, context.environment("PATH").value_or(""));
  TRY_ASSIGN(settings.engine, fleet::choose_engine(context.system, name, settings.path));
  if (settings.engine->joins_streams && !context.environment("SLURM_JOB_ID"))
    return fail(ErrorCode::usage,
                "srun reaches nodes inside an allocation of Slurm only: elsewhere it would queue a job",
                "call it by `salloc -N... sharefs --on ...`, or leave --engine out");
  return {};
}

Result<std::string> fleet_directory(Context& context) {
  if (!context.system.files().is_live())
    return fail(ErrorCode::usage, "`--on` reaches running machines, and `--root` names another installation",
                "leave one of the two out");
  return state_directory(context).map([](const std::string& state) { return join_path(state, "fleet"); });
}

Result<plan::HostLock> lock_fleet(Context& context, const std::string& apart) {
  TRY_ASSIGN(const auto directory, fleet_directory(context));
  return take_lock(context, apart.empty() ? directory : join_path(directory, apart), context.flags.wait);
}

Result<std::vector<Outcome>> all_answers(Result<fleet::Run> run) {
  TRY_ASSIGN(auto ended, std::move(run));
  if (ended.interrupted)
    return fail(ErrorCode::interrupted, "interrupted");
  return std::move(ended.outcomes);
}

Result<fleet::MostFailures> most_failures_of(const Arguments& arguments) {
  const auto text = arguments.value("max-failures").value_or("3");
  const auto most = fleet::parse_most_failures(text);
  return most ? Result<fleet::MostFailures>(*most)
              : not_understood("max-failures", text, "a number of nodes, or a part of them: 3, 5%");
}

Result<std::chrono::seconds> node_deadline(const Arguments& arguments) {
  if (!arguments.value("node-deadline"))
    return fleet::Settings().command;
  constexpr std::chrono::seconds k_least{1};
  return arguments.duration("node-deadline").map([&](std::chrono::milliseconds given) {
    return std::max(std::chrono::duration_cast<std::chrono::seconds>(given), k_least);
  });
}

Result<fleet::Run> run_script(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes,
                              fleet::Request request, bool in_order, const std::string& what) {
  TRY_ASSIGN(request.settings, settings_of(context, arguments, true));
  request.nodes = nodes;
  return in_order ? ask_once(context, std::move(request), what) : ask(context, std::move(request), {}, what);
}

std::optional<Result<int>> agree_on_plans(Context& context, std::vector<fleet::Node>& nodes,
                                          const std::vector<Outcome>& answers, const fleet::MostFailures& most) {
  show_plans(context, answers);
  std::vector<fleet::Node> pending;
  std::size_t failures = 0;
  for (const auto& outcome : answers)
    if (outcome.state == State::pending)
      pending.push_back(*std::ranges::find(nodes, outcome.node, &fleet::Node::name));
    else if (!is_good(outcome.state) && std::ranges::find(nodes, outcome.node, &fleet::Node::name) != nodes.end())
      ++failures;
  if (pending.empty() || context.flags.changes_nothing()) {
    show_outcomes(context, answers);
    const int code = fleet::exit_code_of(answers);
    return context.flags.dry_run && code == k_exit_pending ? k_exit_ok : code;
  }
  if (failures > most.of(nodes.size())) {
    show_outcomes(context, answers);
    return fail(ErrorCode::failed, fmt::format("{} cannot do it: nothing was changed", count_of(failures, "node")),
                "mend them, leave them out (`--on 'all!NODE'`), or allow more by --max-failures");
  }
  TRY_ASSIGN(const auto agreed, ask_consent(context));
  if (!agreed)
    return k_exit_failed;
  nodes = std::move(pending);
  return std::nullopt;
}

Result<std::vector<Outcome>> ask_nodes(Context& context, const std::vector<fleet::Node>& nodes, const Argv& words,
                                       std::chrono::seconds deadline) {
  fleet::Request request{.nodes = nodes, .asking = {.words = words, .as_root = true}};
  TRY(choose_engine(context, "", request.settings));
  request.settings.check_deadline = deadline;
  return all_answers(ask(context, std::move(request)));
}

Result<int> run_on_nodes(Context& context, const CommandSpec& spec, const Arguments& arguments) {
  TRY(fleet_directory(context));
  TRY_ASSIGN(auto settings, settings_of(context, arguments));
  TRY_ASSIGN(const auto nodes, chosen_nodes(context, context.flags.on));
  const bool changes = spec.changes && (spec.name != "doctor" || arguments.flag("fix"));
  fleet::Request job{.nodes = nodes,
                     .servers_last = spec.name == "down",
                     .settings = settings,
                     .asking = {.words = words_for_nodes(context), .as_root = changes}};
  context.envelope.fields["on"] = context.flags.on;
  context.envelope.fields["engine"] = settings.engine->name;
  if (spec.before_nodes != nullptr)
    TRY(spec.before_nodes(context, arguments, job));
  // A copy has no short deadline: it ends by itself when no more bytes arrive.
  constexpr std::chrono::hours k_copying{24};
  if (job.at_once && !arguments.value("node-deadline"))
    job.settings.command = job.settings.check_deadline = k_copying;
  if (job.nodes.empty()) {
    show_outcomes(context, job.before);
    if (job.before.empty())
      context.console.message("nothing is to be done on any node");
    return fleet::exit_code_of(job.before);
  }
  if (!changes) {
    TRY_ASSIGN(const auto run, ask(context, std::move(job)));
    show_outcomes(context, run.outcomes);
    return run.interrupted ? k_exit_interrupted : fleet::exit_code_of(run.outcomes);
  }
  std::erase_if(job.asking.words,
                [](const std::string& word) { return word == "--check" || word == "--dry-run" || word == "-n"; });
  return change_nodes(context, std::move(job));
}

Result<int> change_from_here(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes,
                             const Argv& words) {
  TRY_ASSIGN(const auto settings, settings_of(context, arguments, true));
  context.envelope.fields["engine"] = settings.engine->name;
  return change_nodes(
      context, {.nodes = nodes, .settings = settings, .asking = {.words = words, .as_root = true, .from_here = true}});
}

Result<std::vector<Outcome>> ask_from_here(Context& context, const Arguments& arguments,
                                           const std::vector<fleet::Node>& nodes, const Argv& words) {
  TRY_ASSIGN(const auto settings, settings_of(context, arguments, true));
  return all_answers(
      ask(context, {.nodes = nodes, .settings = settings, .asking = {.words = words, .from_here = true}}));
}

Result<int> resume_run(Context& context, std::string id) {
  TRY_ASSIGN(auto left, load_record(context, id));
  const auto command = shell_join(left.asking.words);
  if (left.nodes.empty()) {
    context.console.message(fmt::format("run {} (`sharefs {}`) is done on all its nodes", id, command));
    return k_exit_ok;
  }
  context.console.proposal(fmt::format("`sharefs {}` on {} more", command, count_of(left.nodes.size(), "node")));
  TRY_ASSIGN(const bool agreed, ask_consent(context));
  return agreed ? apply_on_nodes(context, std::move(left)) : k_exit_failed;
}

} // namespace sharefs::cli
