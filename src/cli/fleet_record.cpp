#include "cli/fleet_job.hpp"

#include "base/json.hpp"
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "cli/exit_code.hpp"
#include "plan/private_directory.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using Json = nlohmann::ordered_json;
using plan::PrivateDirectory;

constexpr const char* k_request = "request.json";
constexpr std::size_t k_most_runs = 20; ///< whose records are kept

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
          {"servers_last", job.servers_last},
          {"at_once", job.at_once},
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

} // namespace

std::string new_run_id() {
  return fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::gmtime(std::time(nullptr)), random_letters(4));
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
  return made ? made->create(k_request, to_json(job, settings, context).dump() + "\n") : fail(made.error());
}

Result<LeftOfRun> load_record(Context& context, const std::string& id) {
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
  job.servers_last = json->value("servers_last", false);
  job.at_once = json->value("at_once", false);
  job.words = json->value("words", Argv{});
  std::vector<fleet::Outcome> before;
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
  return LeftOfRun{chosen, std::move(job), *settings, std::move(before)};
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
