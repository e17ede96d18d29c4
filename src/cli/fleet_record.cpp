// A change of many nodes: its record on this machine, and its lease on the servers.
#include "cli/on_nodes.hpp"

#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "plan/private_directory.hpp"
#include "sys/process/interrupt.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::cli {

namespace {

using plan::PrivateDirectory;

constexpr const char* k_request = "run.json";
constexpr std::size_t k_most_runs = 20; ///< older records are removed

struct StoredRun {
  fleet::Request job;
  std::string engine; ///< its name
};
template <FieldsOf<StoredRun> R> auto fields(R& r) {
  auto& [job, engine] = r;
  auto& [count, is_percent] = job.settings.most_failures;
  return named("words", job.asking.words, "engine", engine, "fanout", job.settings.at_a_time, "canary",
               job.settings.canary, "max_failures", count, "percent", is_percent, "deadline", job.settings.command,
               "from_here", job.asking.from_here, "servers_last", job.servers_last, "at_once", job.at_once, "nodes",
               job.nodes);
}

Result<StoredRun> read_run(Context& context, const std::string& directory, const std::string& id) {
  const auto opened = PrivateDirectory::open(context.system.files(), join_path(directory, id));
  const auto text = opened && *opened ? (*opened)->read(k_request) : fail(ErrorCode::failed, "");
  auto run = text ? from_json<StoredRun>(*text, 16U << 20U) : std::nullopt;
  return run ? Result<StoredRun>(std::move(*run))
             : fail(ErrorCode::failed, fmt::format("the record of run {} cannot be read", id));
}

bool is_done(const Result<std::map<std::string, fleet::Outcome>>& outcomes, const std::string& node) {
  return outcomes && outcomes->contains(node) && is_good(outcomes->at(node).state);
}

/// Returns the names of the records, oldest first.
Result<std::vector<std::string>> run_ids(Context& context, const std::string& directory) {
  TRY_ASSIGN(const auto opened, PrivateDirectory::open(context.system.files(), directory));
  if (!opened)
    return {};
  TRY_ASSIGN(auto names, opened->names());
  std::erase_if(names, [](const std::string& name) { return name.empty() || name.front() != '2'; });
  std::ranges::sort(names);
  return names;
}

/// Error `not_found` with a "did you mean" if this machine has no record of the run.
Result<void> check_run(const std::vector<std::string>& ids, const std::string& id) {
  if (contains(ids, id))
    return {};
  if (ids.empty() && id.empty())
    return fail(ErrorCode::not_found, "this machine has no record of a run");
  return fail(ErrorCode::not_found, fmt::format("there is no run {}", shell_quote(id)),
              did_you_mean_hint(id, ids, "`sharefs nodes resume --list` shows them"));
}

/// Adds the answers that came when this machine's sharefs had been killed: ssh was still there to write them down.
void add_late_answers(const PrivateDirectory& record, const StoredRun& run,
                      std::map<std::string, fleet::Outcome>& outcomes) {
  for (const auto& node : run.job.nodes) {
    if (outcomes.contains(node.name))
      continue;
    fleet::FrameReader reader;
    reader.add(record.read(node.name + ".out").value_or(""));
    if (auto answer = reader.answer(node.name); answer.exit_code)
      outcomes.emplace(node.name, fleet::outcome_of(node, std::move(answer), {}));
  }
}

/// True if the run may have changed something on the node, and its record does not have what: the answer was lost with
/// this machine's sharefs, with the connection, or at the deadline.
bool is_open(const PrivateDirectory& record, const StoredRun& run, const std::string& node,
             const fleet::Outcome* outcome) {
  using fleet::State;
  if (outcome != nullptr && (is_good(outcome->state) || outcome->document.is_object()))
    return false;
  if (run.engine == "srun") // it has no file of the node
    return outcome == nullptr || outcome->state == State::failed;
  const auto out = record.read(node + ".out"); // made when the node is begun
  return out && (outcome == nullptr || outcome->state == State::failed || outcome->state == State::timed_out ||
                 (outcome->state == State::unreachable && !out->empty())); // the connection ended in the middle
}

/// Returns an outcome for each node whose part of the run is not undone: it is not known, or the node is not in
/// sharefs.yaml any more. `chosen` are the nodes of the undo; another node that is still known is left out by choice.
Result<std::vector<fleet::Outcome>> find_left(Context& context, const std::optional<PrivateDirectory>& record,
                                              const StoredRun& run,
                                              const std::map<std::string, fleet::Outcome>& outcomes,
                                              const std::vector<fleet::Node>& chosen) {
  TRY_ASSIGN(const auto known, known_nodes(context));
  std::set<std::string> names, in_config, in_undo;
  for (const auto& node : run.job.nodes)
    names.insert(node.name);
  for (const auto& [name, outcome] : outcomes)
    names.insert(name); // also of an earlier run that this one has continued
  for (const auto& node : known)
    in_config.insert(node.name);
  for (const auto& node : chosen)
    in_undo.insert(node.name);
  std::vector<fleet::Outcome> left;
  for (const auto& name : names) {
    const auto found = outcomes.find(name);
    const auto* outcome = found == outcomes.end() ? nullptr : &found->second;
    const auto ids = outcome != nullptr ? outcome->journal_ids() : "";
    if (in_config.contains(name) && !in_undo.contains(name))
      continue;
    if (ids.empty() && record && is_open(*record, run, name, outcome))
      left.push_back({.node = name,
                      .state = fleet::State::failed,
                      .why = "its answer to that run was lost: it is not known what was changed there",
                      .hint = "`ssh NODE sharefs undo --list` shows it"});
    else if (!ids.empty() && !in_undo.contains(name))
      left.push_back({.node = name,
                      .state = fleet::State::failed,
                      .why = "it is not in sharefs.yaml any more, and keeps what the run changed there",
                      .hint = fmt::format("`ssh NODE sharefs undo {}` takes it back", ids)});
  }
  return left;
}

} // namespace

Result<std::string> new_record_id(Context& context, const std::string& directory) {
  return run_ids(context, directory).map([](const std::vector<std::string>& ids) {
    return fleet::new_run_id(ids.empty() ? "" : ids.back());
  });
}

Result<void> begin_record(Context& context, const std::string& directory, const std::string& id,
                          const fleet::Request& job) {
  TRY_ASSIGN(const auto parent, PrivateDirectory::make(context.system.files(), directory));
  TRY_ASSIGN(const auto ids, run_ids(context, directory));
  for (std::size_t i = 0; i + k_most_runs <= ids.size(); ++i)
    TRY(parent.remove(ids[i]));
  TRY_ASSIGN(const auto made, parent.make_below(id));
  const StoredRun run{job, std::string(job.settings.engine->name)};
  return made.create(k_request, json_of(run, JsonTexts::exact).dump() + "\n");
}

Result<fleet::Request> load_record(Context& context, std::string& id) {
  TRY_ASSIGN(const auto directory, fleet_directory(context));
  TRY_ASSIGN(const auto ids, run_ids(context, directory));
  if (id.empty() && !ids.empty())
    id = ids.back();
  TRY(check_run(ids, id));
  TRY_ASSIGN(auto run, read_run(context, directory, id));
  auto& [job, engine] = run;
  TRY(choose_engine(context, engine, job.settings));
  job.asking.as_root = true;
  const auto outcomes = fleet::read_outcomes(context.system, join_path(directory, id));
  // The record also holds the good outcomes of an earlier run that this run has continued.
  for (const auto& [name, outcome] : outcomes.value_or(std::map<std::string, fleet::Outcome>{}))
    if (is_good(outcome.state))
      job.before.push_back(outcome);
  std::erase_if(job.nodes, [&](const fleet::Node& node) { return is_done(outcomes, node.name); });
  return std::move(job);
}

Result<void> find_run(Context& context, const Arguments& arguments, fleet::Request& job) {
  if (arguments.positional.size() != 1)
    return fail(ErrorCode::usage, "`--on NODES undo` needs the run that it is to take back",
                "`sharefs nodes resume --list` shows them; changes of one machine are undone there");
  const auto id = arguments.positional.front();
  TRY_ASSIGN(const auto directory, fleet_directory(context));
  TRY_ASSIGN(const auto ids, run_ids(context, directory));
  TRY(check_run(ids, id));
  TRY_ASSIGN(const auto run, read_run(context, directory, id));
  job.servers_last = !run.job.servers_last;
  TRY_ASSIGN(auto outcomes, fleet::read_outcomes(context.system, join_path(directory, id)));
  TRY_ASSIGN(const auto record, PrivateDirectory::open(context.system.files(), join_path(directory, id)));
  if (record)
    add_late_answers(*record, run, outcomes);
  TRY_ASSIGN(job.before, find_left(context, record, run, outcomes, job.nodes));
  std::vector<fleet::Node> changed;
  for (auto& node : job.nodes)
    if (const auto found = outcomes.find(node.name); found != outcomes.end() && !found->second.journal_ids().empty()) {
      node.words = found->second.journal_ids();
      changed.push_back(std::move(node));
    }
  std::erase(job.asking.words, id);
  job.nodes = std::move(changed);
  return {};
}

Result<int> list_runs(Context& context) {
  TRY_ASSIGN(const auto directory, fleet_directory(context));
  TRY_ASSIGN(const auto ids, run_ids(context, directory));
  ui::Table table({{"RUN"}, {"GOOD", true}, {"LEFT", true}, {"COMMAND", false, true}});
  auto runs = Json::array();
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    const auto run = read_run(context, directory, *id);
    const auto outcomes = fleet::read_outcomes(context.system, join_path(directory, *id));
    if (!run) {
      context.console.warning(run.error().message);
      continue;
    }
    std::size_t good = 0, left = 0;
    for (const auto& node : run->job.nodes)
      ++(is_done(outcomes, node.name) ? good : left);
    const auto command = "sharefs " + shell_join(run->job.asking.words);
    table.add({{*id}, {std::to_string(good)}, {std::to_string(left)}, {command}});
    runs.push_back({{"run", *id}, {"good", good}, {"left", left}, {"command", command}});
  }
  context.show(table, "runs", std::move(runs), ids.empty() ? "no change of many nodes is on record" : "");
  return k_exit_ok;
}

LeaseOnServers::Taken LeaseOnServers::take(Context& context, const std::string& run, std::chrono::seconds command) {
  TRY_ASSIGN(auto servers, known_servers(context));
  std::unique_ptr<LeaseOnServers> lease(new LeaseOnServers(context, run, std::move(servers)));
  if (lease->m_servers.empty())
    return lease;
  const auto identity = context.system.identity();
  const auto span = std::chrono::minutes(10) + 4 * command;
  const Argv words{"nodes", "lease",
                   run,     identity.user + "@" + identity.hostname,
                   "--for", fmt::format("{}s", std::chrono::seconds(span).count())};
  TRY_ASSIGN(const auto outcomes, ask_nodes(context, lease->m_servers, words));
  for (const auto& outcome : outcomes)
    if (outcome.state == fleet::State::failed)
      return fail(ErrorCode::busy, fmt::format("{}: {}", outcome.node, outcome.why), outcome.hint);
    else if (!is_good(outcome.state))
      context.console.warning(
          fmt::format("{} could not be asked who else changes the cluster: {}", outcome.node, outcome.why));
  // A server that is off would hold up the end, too.
  std::erase_if(lease->m_servers, [&](const fleet::Node& server) {
    return !is_good(std::ranges::find(outcomes, server.name, &fleet::Outcome::node)->state);
  });
  return lease;
}

LeaseOnServers::~LeaseOnServers() {
  if (m_servers.empty())
    return;
  constexpr std::chrono::seconds k_longest{10};
  const sys::DelayInterrupts delay;
  const Argv words{"nodes", "lease", m_run, "--release"};
  const auto outcomes = ask_nodes(m_context, m_servers, words, k_longest);
  const bool is_given_back = outcomes && std::ranges::all_of(*outcomes, &fleet::is_good, &fleet::Outcome::state);
  if (!is_given_back)
    m_context.console.warning("the servers may refuse other administrators until the lease of this run expires",
                              fmt::format("`sharefs {}` on a server gives it back", shell_join(words)));
}

} // namespace sharefs::cli
