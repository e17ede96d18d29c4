#include "cli/fleet_job.hpp"

#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/exit_code.hpp"
#include "plan/private_directory.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <ranges>
#include <utility>

namespace sharefs::cli {

namespace {

using Json = nlohmann::ordered_json;
using plan::PrivateDirectory;

constexpr const char* k_request = "run.json";
constexpr std::size_t k_most_runs = 20; ///< whose records are kept

struct StoredNode {
  std::string name, address, user;
  bool server = false;
  std::string words; ///< of the command, for this node alone
  friend bool operator==(const StoredNode&, const StoredNode&) = default;
};
template <FieldsOf<StoredNode> N> auto fields(N& n) {
  return named("name", n.name, "address", n.address, "user", n.user, "server", n.server, "words", n.words);
}

/// Of the job without its nodes, which are stored with their own words.
struct StoredRun {
  FleetJob job;
  FleetSettings settings;
  std::string engine;
  std::vector<StoredNode> nodes;
};
template <FieldsOf<StoredRun> R> auto fields(R& r) {
  auto& most = r.settings.most_failures;
  return named("words", r.job.words, "engine", r.engine, "fanout", r.settings.at_a_time, "canary", r.settings.canary,
               "max_failures", most.count, "percent", most.is_percent, "deadline", r.settings.command, "from_here",
               r.job.from_here, "servers_last", r.job.servers_last, "at_once", r.job.at_once, "nodes", r.nodes);
}

StoredRun to_store(const FleetJob& job, const FleetSettings& settings) {
  StoredRun run{job, settings, std::string(settings.engine->name), {}};
  for (const auto& node : job.nodes) {
    const auto words = job.own_words.find(node.name);
    run.nodes.push_back({node.name, node.address, node.user, node.in(fleet::k_servers),
                         words != job.own_words.end() ? words->second : ""});
  }
  return run;
}

Result<StoredRun> read_run(Context& context, const std::string& directory, const std::string& id) {
  const auto opened = PrivateDirectory::open(context.system.files(), join_path(directory, id));
  const auto text = opened && *opened ? (*opened)->read(k_request) : fail(ErrorCode::failed, "");
  const auto json = text ? read_json<Json>(*text, {.bytes = 16U << 20U}) : fail(text.error());
  StoredRun run;
  if (!json || !json->is_object() || read_fields(*json, run) != nullptr)
    return fail(ErrorCode::failed, fmt::format("the record of run {} cannot be read", id));
  return run;
}

bool is_done(const Result<std::map<std::string, fleet::Outcome>>& outcomes, const std::string& node) {
  return outcomes && outcomes->contains(node) && is_good(outcomes->at(node).state);
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

} // namespace

std::string new_run_id() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const auto second = floor<seconds>(now);
  std::string within(4, '0'); // the microsecond, in base 36: of two runs in one second the later one is the newer
  auto rest = duration_cast<microseconds>(now - second).count();
  for (auto& letter : within | std::views::reverse)
    letter = "0123456789abcdefghijklmnopqrstuvwxyz"[std::exchange(rest, rest / 36) % 36];
  return fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::gmtime(system_clock::to_time_t(second)), within);
}

Result<void> begin_record(Context& context, const std::string& directory, const std::string& id, const FleetJob& job,
                          const FleetSettings& settings) {
  const auto parent = PrivateDirectory::make(context.system.files(), directory);
  const auto ids = run_ids(context, directory);
  if (!parent || !ids)
    return fail(!parent ? parent.error() : ids.error());
  for (std::size_t i = 0; i + k_most_runs <= ids->size(); ++i)
    if (auto removed = parent->remove((*ids)[i]); !removed)
      return fail(removed.error());
  const auto made = parent->make_below(id);
  return made ? made->create(k_request, json_of(to_store(job, settings), JsonTexts::exact).dump() + "\n")
              : fail(made.error());
}

Result<LeftOfRun> load_record(Context& context, const std::string& id) {
  const auto directory = fleet_directory(context);
  const auto ids = directory ? run_ids(context, *directory) : fail(directory.error());
  if (!ids)
    return fail(ids.error());
  if (ids->empty() || (!id.empty() && std::ranges::find(*ids, id) == ids->end()))
    return fail(ErrorCode::not_found,
                id.empty() ? "no run of this machine is on record" : fmt::format("there is no run {}", id),
                id.empty() ? "" : did_you_mean_hint(id, *ids, "`sharefs nodes resume --list` shows them"));
  const auto chosen = id.empty() ? ids->back() : id;
  auto run = read_run(context, *directory, chosen);
  if (!run)
    return fail(run.error());
  auto& [job, settings, engine, nodes] = *run;
  if (auto found = choose_engine(context, engine, settings); !found)
    return fail(found.error());
  job.changes = true;
  const auto outcomes = fleet::read_outcomes(context.system, join_path(*directory, chosen));
  // What is done stands there also of the run that this one went on with.
  std::vector<fleet::Outcome> before;
  for (const auto& [name, outcome] : outcomes.value_or(std::map<std::string, fleet::Outcome>{}))
    if (is_good(outcome.state))
      before.push_back(outcome);
  for (const auto& stored : nodes) {
    if (is_done(outcomes, stored.name))
      continue;
    if (!stored.words.empty())
      job.own_words[stored.name] = stored.words;
    fleet::Node node{stored.name, stored.address, stored.user};
    node.groups.emplace_back(stored.server ? fleet::k_servers : fleet::k_clients);
    job.nodes.push_back(std::move(node));
  }
  return LeftOfRun{chosen, std::move(job), std::move(settings), std::move(before)};
}

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

Result<int> list_runs(Context& context) {
  const auto directory = fleet_directory(context);
  const auto ids = directory ? run_ids(context, *directory) : fail(directory.error());
  if (!ids)
    return fail(ids.error());
  ui::Table table({{"RUN"}, {"GOOD", true}, {"LEFT", true}, {"COMMAND", false, true}});
  auto runs = Json::array();
  for (auto id = ids->rbegin(); id != ids->rend(); ++id) {
    const auto run = read_run(context, *directory, *id);
    const auto outcomes = fleet::read_outcomes(context.system, join_path(*directory, *id));
    if (!run)
      continue;
    std::size_t good = 0, left = 0;
    for (const auto& node : run->nodes)
      ++(is_done(outcomes, node.name) ? good : left);
    const auto command = "sharefs " + shell_join(run->job.words);
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
