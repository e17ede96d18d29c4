#include "cli/on_nodes.hpp"

#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "cli/fleet_view.hpp"
#include "fleet/sources.hpp"
#include "plan/host_lock.hpp"
#include "plan/private_directory.hpp"
#include "sys/process/interrupt.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using fleet::Outcome;
using fleet::State;
using plan::PrivateDirectory;
using Json = nlohmann::ordered_json;

constexpr const char* k_request = "request.json";
constexpr std::size_t k_most_runs = 20; ///< whose records are kept

/// What is to be done, and all that a later process needs to go on with it.
struct FleetJob {
  Argv words; ///< of the command, without --json
  bool changes = false;
  bool from_here = false; ///< for the nodes, on this machine
  std::vector<fleet::Node> nodes;
  std::map<std::string, std::string> own_words = {};
};

struct FleetSettings {
  const fleet::Engine* engine = nullptr;
  std::string path = {}; ///< where it and ssh are
  unsigned at_a_time = 64;
  std::size_t canary = 1;
  fleet::MostFailures most_failures;
  std::chrono::seconds command{600};
};

template <class Number>
Result<Number> number_option(const Arguments& arguments, std::string_view name, Number least, Number most,
                             Number fallback) {
  const auto text = arguments.value(name).value_or(std::to_string(fallback));
  const auto number = parse_number<Number>(text);
  if (!number || *number < least || *number > most)
    return fail(ErrorCode::usage, fmt::format("option `--{}` does not understand `{}`", name, text),
                fmt::format("a number from {} to {}", least, most));
  return *number;
}

/// The engine of this name, or the first that is there.
Result<void> choose_engine(Context& context, const std::string& name, FleetSettings& settings) {
  settings.path = fleet::path_for_engines(context.system, context.environment("PATH").value_or(""));
  const auto engine = fleet::choose_engine(context.system, name, settings.path);
  if (!engine)
    return fail(engine.error());
  if ((*engine)->joins_streams && !context.environment("SLURM_JOB_ID"))
    return fail(ErrorCode::usage,
                "srun reaches nodes inside an allocation of Slurm only: elsewhere it would queue a job",
                "call it by `salloc -N... sharefs --on ...`, or leave --engine out");
  settings.engine = *engine;
  return {};
}

Result<FleetSettings> settings_of(Context& context, const Arguments& arguments) {
  FleetSettings settings;
  const auto engine = choose_engine(context, arguments.value("engine").value_or(""), settings);
  const auto at_a_time = number_option<unsigned>(arguments, "fanout", 1, 1024, settings.at_a_time);
  const auto canary = number_option<std::size_t>(arguments, "canary", 0, fleet::k_most_nodes, settings.canary);
  const auto command = arguments.duration("node-deadline");
  if (!engine || !at_a_time || !canary || !command)
    return fail(!engine ? engine.error() : !at_a_time ? at_a_time.error() : !canary ? canary.error() : command.error());
  const auto most = most_failures_of(arguments);
  if (!most)
    return fail(most.error());
  constexpr std::chrono::seconds k_least{1};
  settings.at_a_time = *at_a_time;
  settings.canary = *canary;
  settings.most_failures = *most;
  settings.command = std::max(std::chrono::duration_cast<std::chrono::seconds>(*command), k_least);
  return settings;
}

/// The command line without what only this machine needs: options of the fleet, consent, the form of the output.
Argv words_for_nodes(const Argv& argv) {
  Argv words;
  const auto is_option = [](std::string_view word, std::string_view name) {
    return word == name || (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=');
  };
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const auto option =
        std::ranges::find_if(fleet_options(), [&](const OptionSpec& spec) { return is_option(argv[i], spec.names); });
    if (option != fleet_options().end())
      i += argv[i].find('=') == std::string::npos ? 1 : 0;
    else if (argv[i] != "--json" && argv[i] != "--yes" && argv[i] != "-y" && argv[i] != "-q" && argv[i] != "--quiet")
      words.push_back(argv[i]);
  }
  return words;
}

fleet::Request request_of(const FleetJob& job, const FleetSettings& settings, const Argv& further, bool in_order) {
  fleet::Request request;
  request.engine = settings.engine;
  request.path = settings.path;
  request.at_a_time = settings.at_a_time;
  request.asking.words = job.words;
  request.asking.words.insert(request.asking.words.end(), further.begin(), further.end());
  request.asking.as_root = job.changes;
  request.asking.from_here = job.from_here;
  request.asking.command = settings.command;
  request.own_words = job.own_words;
  request.most_failures = in_order ? settings.most_failures : fleet::MostFailures{job.nodes.size(), false};
  request.batches = in_order ? fleet::batches_for_changes(job.nodes, settings.canary)
                             : std::vector<fleet::Batch>{{"all", job.nodes, false}};
  return request;
}

std::string new_id() {
  return fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::gmtime(std::time(nullptr)), random_letters(4));
}

/// Runs it with progress on the terminal.
Result<fleet::Run> run_with_progress(Context& context, const std::string& directory, const fleet::Request& request,
                                     const std::string& what) {
  std::size_t all = 0;
  for (const auto& batch : request.batches)
    all += batch.nodes.size();
  sys::install_interrupt_handlers();
  ui::Console::Progress progress(context.console, what, all);
  auto run = fleet::run_on_nodes(context.system, directory, request, [&](const Outcome& outcome) {
    progress.advance(fmt::format("{}: {}", outcome.node, to_string(outcome.state)));
  });
  if (run && !run->problem.empty())
    return fail(ErrorCode::failed, run->problem);
  return run;
}

/// Asks without a record that outlives the answer.
Result<fleet::Run> ask_once(Context& context, const fleet::Request& request, const std::string& what) {
  const auto parent = fleet_directory(context);
  if (!parent)
    return fail(parent.error());
  const auto id = "asked-" + new_id();
  auto run = run_with_progress(context, join_path(*parent, id), request, what);
  if (const auto opened = PrivateDirectory::open(context.system.files(), *parent); opened && *opened)
    if (const auto removed = (*opened)->remove(id); !removed)
      context.console.warning(removed.error().message);
  return run;
}

Json to_json(const FleetJob& job, const FleetSettings& settings, const Context& context) {
  auto nodes = Json::array();
  for (const auto& node : job.nodes)
    nodes.push_back(
        {{"name", node.name}, {"address", node.address}, {"user", node.user}, {"server", node.in(fleet::k_servers)}});
  return {{"words", job.words},
          {"user", context.system.identity().user},
          {"engine", settings.engine->name},
          {"fanout", settings.at_a_time},
          {"canary", settings.canary},
          {"max_failures", settings.most_failures.count},
          {"percent", settings.most_failures.is_percent},
          {"deadline", settings.command.count()},
          {"own_words", job.own_words},
          {"from_here", job.from_here},
          {"nodes", std::move(nodes)}};
}

Result<FleetSettings> stored_settings(Context& context, const Json& stored) {
  FleetSettings settings;
  if (auto chosen = choose_engine(context, stored.value("engine", ""), settings); !chosen)
    return fail(chosen.error());
  settings.at_a_time = stored.value("fanout", settings.at_a_time);
  settings.canary = stored.value("canary", settings.canary);
  settings.most_failures = {stored.value("max_failures", settings.most_failures.count), stored.value("percent", false)};
  settings.command = std::chrono::seconds(stored.value("deadline", settings.command.count()));
  return settings;
}

/// The names of the records, oldest first.
Result<std::vector<std::string>> run_ids(Context& context, const std::string& directory) {
  const auto opened = PrivateDirectory::open(context.system.files(), directory);
  if (!opened || !*opened)
    return opened ? Result<std::vector<std::string>>(std::vector<std::string>{}) : fail(opened.error());
  auto names = (*opened)->names();
  if (names) {
    std::erase_if(*names, [](const std::string& name) { return name.empty() || name.front() != '2'; });
    std::ranges::sort(*names);
  }
  return names;
}

/// A new record, with what is to be done; records beyond the newest go.
Result<std::string> begin_record(Context& context, const std::string& directory, const Json& request) {
  const auto parent = PrivateDirectory::make(context.system.files(), directory);
  const auto ids = run_ids(context, directory);
  if (!parent || !ids)
    return fail(!parent ? parent.error() : ids.error());
  for (std::size_t i = 0; i + k_most_runs <= ids->size(); ++i)
    if (auto removed = parent->remove((*ids)[i]); !removed)
      return fail(removed.error());
  const auto id = new_id();
  const auto made = parent->make_below(id);
  const auto created = made ? made->create(k_request, request.dump() + "\n") : fail(made.error());
  return created ? Result<std::string>(id) : fail(created.error());
}

/// The end of a run in words: how to go on, how to take it back.
void say_end(Context& context, const std::string& id, const fleet::Run& run, const std::vector<Outcome>& outcomes) {
  std::vector<std::string> open;
  for (const auto& outcome : outcomes)
    if (!is_good(outcome.state))
      open.push_back(outcome.node);
  if (run.interrupted)
    context.console.message(fmt::format("interrupted; not known to be done: {}", fleet::fold(open)));
  else if (run.stopped)
    context.console.message("stopped: too many nodes failed, and the others were not begun (--max-failures, --canary)");
  if (!open.empty())
    context.console.message(fmt::format("`sharefs nodes resume {}` goes on where it is not done", id));
  if (std::ranges::any_of(outcomes, [](const Outcome& outcome) { return !outcome.journal_id().empty(); }))
    context.console.message(fmt::format("`sharefs --on all undo {}` takes it back", id));
}

/// The servers know who changes the cluster while it lives. One that does not answer cannot be asked, which is said.
class LeaseOnServers {
 public:
  static Result<LeaseOnServers> take(Context& context, const std::string& run, const FleetSettings& settings) {
    LeaseOnServers lease(context, run);
    const auto nodes = known_nodes(context);
    for (const auto& node : nodes ? *nodes : std::vector<fleet::Node>{})
      if (node.in(fleet::k_servers))
        lease.m_servers.push_back(node);
    if (lease.m_servers.empty())
      return lease;
    const auto identity = context.system.identity();
    const auto span = std::chrono::minutes(10) + 4 * settings.command;
    const auto outcomes = ask_nodes(context, lease.m_servers,
                                    {"nodes", "lease", run, identity.user + "@" + identity.hostname, "--for",
                                     fmt::format("{}s", std::chrono::seconds(span).count())},
                                    true);
    if (!outcomes)
      return fail(outcomes.error());
    for (const auto& outcome : *outcomes)
      if (outcome.state == State::failed)
        return fail(ErrorCode::busy, fmt::format("{}: {}", outcome.node, outcome.why), outcome.hint);
      else if (!is_good(outcome.state))
        context.console.warning(
            fmt::format("{} is not asked who else changes the cluster: {}", outcome.node, outcome.why));
    return lease;
  }
  LeaseOnServers(LeaseOnServers&& other) noexcept
      : m_context(other.m_context), m_run(other.m_run), m_servers(std::exchange(other.m_servers, {})) {}
  LeaseOnServers& operator=(LeaseOnServers&&) = delete;
  LeaseOnServers(const LeaseOnServers&) = delete;
  LeaseOnServers& operator=(const LeaseOnServers&) = delete;
  ~LeaseOnServers() {
    const sys::DelayInterrupts delay;
    if (!m_servers.empty())
      (void)ask_nodes(m_context, m_servers, {"nodes", "lease", m_run, "--release"}, true); // it ends by itself
  }

 private:
  LeaseOnServers(Context& context, std::string run) : m_context(context), m_run(std::move(run)) {}
  Context& m_context;
  std::string m_run;
  std::vector<fleet::Node> m_servers;
};

/// Applies it in order, under the lock of whoever changes many nodes from this machine, with a record. `before` is what
/// is known of other nodes already.
Result<int> apply_on_nodes(Context& context, const FleetJob& job, const FleetSettings& settings,
                           std::vector<Outcome> before) {
  const auto directory = fleet_directory(context);
  if (!directory)
    return fail(directory.error());
  // What is copied for hours keeps nobody from changing the nodes otherwise.
  const auto lock = lock_fleet(context, job.from_here ? "from-here" : "");
  if (!lock)
    return fail(lock.error());
  const auto id = begin_record(context, *directory, to_json(job, settings, context));
  if (!id)
    return fail(id.error());
  std::optional<LeaseOnServers> lease;
  if (!job.from_here) {
    auto taken = LeaseOnServers::take(context, *id, settings);
    if (!taken)
      return fail(taken.error());
    lease.emplace(std::move(*taken));
  }
  auto request = request_of(job, settings, {"--yes", "--json"}, true);
  request.before = before;
  auto run = run_with_progress(context, join_path(*directory, *id), request, "working on nodes");
  if (!run)
    return fail(run.error());
  context.envelope.fields["run"] = *id;
  before.insert(before.end(), run->outcomes.begin(), run->outcomes.end());
  show_outcomes(context, before);
  say_end(context, *id, *run, before);
  return run->interrupted ? k_exit_interrupted : fleet::exit_code_of(before);
}

/// The plan of all nodes is made and shown; those that have something to do. nullopt: that was all.
Result<std::optional<int>> plan_on_nodes(Context& context, FleetJob& job, const FleetSettings& settings,
                                         std::vector<Outcome>& before) {
  const auto looked = ask_once(context, request_of(job, settings, {"--check", "--json"}, false), "asking nodes");
  if (!looked)
    return fail(looked.error());
  if (looked->interrupted)
    return fail(ErrorCode::interrupted, "interrupted: nothing was changed");
  for (const auto& outcome : looked->outcomes)
    if (outcome.state != State::pending)
      before.push_back(outcome);
  auto agreed = agree_on_plans(context, job.nodes, looked->outcomes, settings.most_failures);
  if (!agreed)
    return fail(agreed.error());
  if (const auto* code = std::get_if<int>(&*agreed))
    return *code;
  job.nodes = std::get<std::vector<fleet::Node>>(std::move(*agreed));
  return std::nullopt;
}

/// Shows what is to be done, asks, and does it.
Result<int> change_nodes(Context& context, FleetJob job, const FleetSettings& settings) {
  std::vector<Outcome> before;
  if (!context.flags.yes || context.flags.check || context.flags.dry_run) {
    const auto ended = plan_on_nodes(context, job, settings, before);
    if (!ended)
      return fail(ended.error());
    if (*ended)
      return **ended;
  }
  return apply_on_nodes(context, job, settings, std::move(before));
}

Result<FleetSettings> settings_from_here(Context& context, const Arguments& arguments) {
  auto settings = settings_of(context, arguments);
  if (settings && settings->engine->joins_streams)
    return fail(ErrorCode::usage,
                fmt::format("the engine `{}` starts tasks on the nodes, and this works by ssh", settings->engine->name),
                "leave --engine out");
  return settings;
}

/// `undo RUN`: on each node the change that the run made there.
Result<void> look_up_run(Context& context, const Arguments& arguments, FleetJob& job) {
  if (arguments.positional.empty())
    return fail(ErrorCode::usage, "`--on NODES undo` needs the run that it is to take back",
                "`sharefs nodes resume --list` shows them; changes of one machine are undone there");
  const auto id = arguments.positional.front();
  const auto directory = fleet_directory(context);
  const auto outcomes =
      directory ? fleet::read_outcomes(context.system, join_path(*directory, id)) : fail(directory.error());
  if (!outcomes)
    return fail(outcomes.error().code, fmt::format("there is no run {} on this machine", id),
                "`sharefs nodes resume --list` shows them");
  std::vector<fleet::Node> changed;
  for (const auto& node : job.nodes)
    if (const auto found = outcomes->find(node.name); found != outcomes->end() && !found->second.journal_id().empty()) {
      changed.push_back(node);
      job.own_words[node.name] = found->second.journal_id();
    }
  std::erase(job.words, id);
  job.nodes = std::move(changed);
  return {};
}

} // namespace

const std::vector<OptionSpec>& fleet_options() {
  static const std::vector<OptionSpec> k_options{
      {.names = "--on",
       .value = "NODES",
       .help = "do it on these nodes of sharefs.yaml: gpu[01-64], @GROUP, all, servers, clients, all!gpu07"},
      {.names = "--engine", .value = "NAME", .help = "what reaches them: xargs (with ssh), clush, pdsh, srun"},
      {.names = "--fanout", .value = "N", .help = "how many at a time", .fallback = "64"},
      {.names = "--canary",
       .value = "N",
       .help = "a change is tried on so many first, behind the servers",
       .fallback = "1"},
      {.names = "--max-failures",
       .value = "N|P%",
       .help = "more nodes that fail or cannot be reached end a change",
       .fallback = "3"},
      {.names = "--node-deadline", .value = "TIME", .help = "by when it ends on a node", .fallback = "10min"},
  };
  return k_options;
}

std::vector<OptionSpec> with_fleet_options(std::vector<OptionSpec> own) {
  own.insert(own.end(), fleet_options().begin() + 1, fleet_options().end());
  return own;
}

Result<std::string> fleet_directory(Context& context) {
  if (!context.system.files().is_live())
    return fail(ErrorCode::usage, "`--on` reaches running machines, and `--root` names another installation",
                "leave one of the two out");
  return state_directory(context).map([](const std::string& state) { return join_path(state, "fleet"); });
}

Result<plan::HostLock> lock_fleet(Context& context, const std::string& apart) {
  const auto directory =
      fleet_directory(context).map([&](const auto& path) { return apart.empty() ? path : join_path(path, apart); });
  const auto made = directory ? PrivateDirectory::make(context.system.files(), *directory) : fail(directory.error());
  if (!made)
    return fail(made.error());
  return plan::HostLock::acquire(context.system.files(), *directory,
                                 {shell_join(context.argv), context.system.identity().user}, context.flags.wait,
                                 [&](const std::string& holder) { context.console.message("waiting: " + holder); });
}

Result<fleet::MostFailures> most_failures_of(const Arguments& arguments) {
  const auto text = arguments.value("max-failures").value_or("3");
  const auto most = fleet::parse_most_failures(text);
  return most ? Result<fleet::MostFailures>(*most)
              : fail(ErrorCode::usage, fmt::format("option `--max-failures` does not understand `{}`", text),
                     "a number of nodes, or a part of them: 3, 5%");
}

Result<fleet::Run> run_script(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes,
                              fleet::Request request, bool in_order, const std::string& what) {
  const auto settings = settings_of(context, arguments);
  if (!settings)
    return fail(settings.error());
  if (settings->engine->joins_streams)
    return fail(ErrorCode::usage, fmt::format("the engine `{}` does not do this", settings->engine->name),
                "leave --engine out: it needs ssh");
  FleetJob job;
  job.changes = request.asking.as_root;
  job.nodes = nodes;
  const auto ordered = request_of(job, *settings, {}, in_order);
  request.engine = ordered.engine;
  request.path = ordered.path;
  request.at_a_time = ordered.at_a_time;
  request.most_failures = ordered.most_failures;
  request.batches = ordered.batches;
  request.asking.command = ordered.asking.command;
  return ask_once(context, request, what);
}

Result<Pending> agree_on_plans(Context& context, const std::vector<fleet::Node>& nodes,
                               const std::vector<Outcome>& looked, const fleet::MostFailures& most) {
  show_plans(context, looked);
  std::vector<fleet::Node> pending;
  std::size_t failures = 0;
  for (const auto& outcome : looked)
    if (outcome.state == State::pending)
      pending.push_back(*std::ranges::find(nodes, outcome.node, &fleet::Node::name));
    else
      failures += is_good(outcome.state) ? 0 : 1;
  if (pending.empty() || context.flags.check || context.flags.dry_run) {
    show_outcomes(context, looked);
    const int code = fleet::exit_code_of(looked);
    return context.flags.dry_run && code == k_exit_pending ? k_exit_ok : code;
  }
  if (failures > most.of(nodes.size())) {
    show_outcomes(context, looked);
    return fail(ErrorCode::failed, fmt::format("{} cannot do it: nothing was changed", count_of(failures, "node")),
                "mend them, leave them out (`--on 'all!NODE'`), or allow more by --max-failures");
  }
  const auto agreed = ask_consent(context);
  if (!agreed)
    return fail(agreed.error());
  if (!*agreed) {
    context.console.message("nothing was changed");
    return k_exit_failed;
  }
  return pending;
}

Result<std::vector<fleet::Node>> known_nodes(Context& context) {
  const auto config = context.config();
  if (!config)
    return fail(config.error());
  const auto& given = (*config)->nodes;
  fleet::Sources sources;
  sources.origin = {(*config)->file};
  for (const auto& one : given.list)
    sources.list.push_back({one.name, one.address, one.user, one.slots, one.origin});
  sources.hostfile = given.hostfile;
  sources.slurm = given.slurm;
  sources.clustershell = given.clustershell;
  for (const auto& group : given.groups)
    sources.groups.push_back({group.name, group.nodes, group.origin});
  for (const auto& server : (*config)->servers)
    sources.servers.push_back({server.name, server.address, {}, {}, {std::string(fleet::k_servers)}, server.origin});
  return fleet::read_nodes(context.system, sources);
}

Result<std::vector<fleet::Node>> chosen_nodes(Context& context, const std::string& pattern) {
  const auto nodes = known_nodes(context);
  if (!nodes)
    return fail(nodes.error());
  const bool only_servers =
      std::ranges::all_of(*nodes, [](const fleet::Node& node) { return node.in(fleet::k_servers); });
  auto chosen = fleet::select(*nodes, pattern);
  if (chosen && !chosen->empty())
    return chosen;
  const auto names = only_servers ? fleet::expand(pattern) : fail(ErrorCode::usage, "");
  if (!names || pattern == fleet::k_all || pattern == fleet::k_clients)
    return chosen ? fail(ErrorCode::usage, fmt::format("`{}` names no node", pattern),
                         "write the machines of the cluster under `nodes:` of sharefs.yaml")
                  : chosen;
  std::vector<fleet::Node> free; // there is no list that a name could be checked against
  for (const auto& name : *names) {
    const auto known = std::ranges::find(*nodes, name, &fleet::Node::name);
    free.push_back(known != nodes->end() ? *known
                                         : fleet::Node{.name = name, .groups = {std::string(fleet::k_clients)}});
  }
  return free;
}

Result<std::vector<Outcome>> ask_nodes(Context& context, const std::vector<fleet::Node>& nodes, const Argv& words,
                                       bool as_root, const std::map<std::string, std::string>& own_words) {
  const FleetJob job{.words = words, .changes = as_root, .nodes = nodes, .own_words = own_words};
  FleetSettings settings;
  if (auto chosen = choose_engine(context, "", settings); !chosen)
    return fail(chosen.error());
  settings.command = std::chrono::seconds(60);
  auto run = ask_once(context, request_of(job, settings, {"--json"}, false), "asking nodes");
  if (!run)
    return fail(run.error());
  return std::move(run->outcomes);
}

Result<int> run_on_nodes(Context& context, const CommandSpec& spec, const Arguments& arguments) {
  if (const auto directory = fleet_directory(context); !directory)
    return fail(directory.error());
  const auto settings = settings_of(context, arguments);
  const auto nodes = settings ? chosen_nodes(context, context.flags.on) : fail(settings.error());
  if (!nodes)
    return fail(nodes.error());
  FleetJob job{.words = words_for_nodes(context.argv), .changes = spec.effect == Effect::changes, .nodes = *nodes};
  context.envelope.fields["on"] = context.flags.on;
  context.envelope.fields["engine"] = settings->engine->name;
  if (spec.name == "undo")
    if (auto looked = look_up_run(context, arguments, job); !looked)
      return fail(looked.error());
  if (job.nodes.empty()) {
    context.console.message("nothing is to be done on any node");
    return k_exit_ok;
  }
  if (!job.changes) {
    const auto run = ask_once(context, request_of(job, *settings, {"--json"}, false), "asking nodes");
    if (!run)
      return fail(run.error());
    show_outcomes(context, run->outcomes);
    return run->interrupted ? k_exit_interrupted : fleet::exit_code_of(run->outcomes);
  }
  std::erase_if(job.words,
                [](const std::string& word) { return word == "--check" || word == "--dry-run" || word == "-n"; });
  return change_nodes(context, std::move(job), *settings);
}

Result<int> change_from_here(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes,
                             const Argv& words) {
  const auto settings = settings_from_here(context, arguments);
  if (!settings)
    return fail(settings.error());
  context.envelope.fields["engine"] = settings->engine->name;
  return change_nodes(context, {.words = words, .changes = true, .from_here = true, .nodes = nodes}, *settings);
}

Result<std::vector<Outcome>> ask_from_here(Context& context, const Arguments& arguments,
                                           const std::vector<fleet::Node>& nodes, const Argv& words) {
  const auto settings = settings_from_here(context, arguments);
  if (!settings)
    return fail(settings.error());
  const FleetJob job{.words = words, .from_here = true, .nodes = nodes};
  auto run = ask_once(context, request_of(job, *settings, {"--json"}, false), "asking nodes");
  if (!run)
    return fail(run.error());
  if (run->interrupted)
    return fail(ErrorCode::interrupted, "interrupted");
  return std::move(run->outcomes);
}

Result<int> resume_run(Context& context, const std::string& id) {
  const auto directory = fleet_directory(context);
  const auto ids = directory ? run_ids(context, *directory) : fail(directory.error());
  if (!ids)
    return fail(ids.error());
  if (ids->empty() || (!id.empty() && std::ranges::find(*ids, id) == ids->end()))
    return fail(ErrorCode::not_found,
                id.empty() ? "no run of this machine is on record" : fmt::format("there is no run {}", id),
                id.empty() ? "" : did_you_mean_hint(id, *ids));
  const auto chosen = id.empty() ? ids->back() : id;
  const auto opened = PrivateDirectory::open(context.system.files(), join_path(*directory, chosen));
  const auto text =
      opened && *opened ? (*opened)->read(k_request) : fail(ErrorCode::failed, chosen + ": cannot be read");
  const auto json = text ? read_json<Json>(*text, {.bytes = 16U << 20U}) : fail(text.error());
  if (!json || !json->is_object())
    return fail(ErrorCode::failed, fmt::format("the record of run {} cannot be read", chosen));
  auto outcomes = fleet::read_outcomes(context.system, join_path(*directory, chosen));
  const auto settings = stored_settings(context, *json);
  if (!settings)
    return fail(settings.error());
  FleetJob job;
  job.changes = true;
  job.from_here = json->value("from_here", false);
  job.words = json->value("words", Argv{});
  std::vector<Outcome> before;
  for (const auto& entry : (*json)["nodes"]) {
    fleet::Node node{entry.value("name", ""), entry.value("address", ""), entry.value("user", "")};
    node.groups.emplace_back(entry.value("server", false) ? fleet::k_servers : fleet::k_clients);
    const auto found = outcomes ? outcomes->find(node.name) : decltype(outcomes->end()){};
    if (outcomes && found != outcomes->end() && is_good(found->second.state)) {
      before.push_back(found->second);
      continue;
    }
    if (const auto words = (*json)["own_words"].find(node.name); words != (*json)["own_words"].end())
      job.own_words[node.name] = words->get<std::string>();
    job.nodes.push_back(std::move(node));
  }
  if (job.nodes.empty()) {
    context.console.message(
        fmt::format("run {} (`sharefs {}`) is done on all its nodes", chosen, shell_join(job.words)));
    return k_exit_ok;
  }
  context.console.message(
      fmt::format("`sharefs {}` on {} more", shell_join(job.words), count_of(job.nodes.size(), "node")));
  if (const auto agreed = ask_consent(context); !agreed || !*agreed)
    return !agreed ? fail(agreed.error()) : Result<int>(k_exit_failed);
  return apply_on_nodes(context, job, *settings, std::move(before));
}

Result<int> list_runs(Context& context) {
  const auto directory = fleet_directory(context);
  const auto ids = directory ? run_ids(context, *directory) : fail(directory.error());
  if (!ids)
    return fail(ids.error());
  ui::Table table({{"RUN"}, {"GOOD", true}, {"LEFT", true}, {"COMMAND", false, true}});
  auto runs = Json::array();
  for (auto id = ids->rbegin(); id != ids->rend(); ++id) {
    const auto opened = PrivateDirectory::open(context.system.files(), join_path(*directory, *id));
    const auto text = opened && *opened ? (*opened)->read(k_request) : fail(ErrorCode::failed, "");
    const auto json = text ? read_json<Json>(*text, {.bytes = 16U << 20U}) : fail(text.error());
    const auto outcomes = fleet::read_outcomes(context.system, join_path(*directory, *id));
    if (!json || !json->is_object())
      continue;
    std::size_t good = 0, left = 0;
    for (const auto& node : json->value("nodes", Json::array())) {
      const auto name = node.value("name", "");
      const bool is_done = outcomes && outcomes->contains(name) && is_good(outcomes->at(name).state);
      ++(is_done ? good : left);
    }
    const auto command = "sharefs " + shell_join(json->value("words", Argv{}));
    table.add({{*id}, {std::to_string(good)}, {std::to_string(left)}, {command}});
    runs.push_back({{"run", *id}, {"good", good}, {"left", left}, {"command", command}});
  }
  context.envelope.fields["runs"] = std::move(runs);
  context.console.show(table);
  if (ids->empty())
    context.console.message("no change of many nodes is on record");
  return k_exit_ok;
}

} // namespace sharefs::cli
