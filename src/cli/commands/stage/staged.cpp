// sharefs stage --list, --drop: lists and removes the copies on this host.
#include "cli/commands/conda/staged.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/stage/stage.hpp"
#include "cli/execute.hpp"
#include "conda/running.hpp"
#include "conda/staged_path.hpp"
#include "ui/table.hpp"

namespace sharefs::cli {

namespace {

Result<std::vector<conda::StagedCopy>> staged_here(Context& context) {
  TRY(context.config());
  return conda::list_staged_paths(context.system, staged_paths_directories(context));
}

/// Returns the path of the environment, or of the directory, that the copy is of.
std::string staged_path(const conda::StagedCopy& copy) {
  const auto generation = conda::in_generation(copy.source());
  return generation ? join_path(generation->store, generation->name) : copy.source();
}

} // namespace

Result<int> list_staged(Context& context) {
  TRY_ASSIGN(const auto config, context.config());
  auto directories = staged_paths_directories(context);
  directories.merge(stage_directories(*config));
  const auto staged = conda::list_staged_paths(context.system, directories);
  ui::Table table({{"PATH"}, {"COPY"}, {"SIZE", true}, {"STATE"}});
  auto json = nlohmann::ordered_json::array();
  for (const auto& one : staged) {
    const bool by_image = one.image.kind == sys::EntryKind::file;
    const auto state = conda::state_of(one);
    const auto path = staged_path(one);
    table.add({{path}, {one.name()}, {by_image ? format_bytes(one.image.size) : "-"}, {state}});
    json.push_back({{"path", to_utf8(path)},
                    {"copy", to_utf8(one.tree.path)},
                    {"bytes", by_image ? nlohmann::ordered_json(one.image.size) : nlohmann::ordered_json()},
                    {"state", state}});
  }
  context.envelope.fields["staged"] = std::move(json);
  if (staged.empty())
    context.console.message("nothing is staged here");
  else
    context.console.show(table);
  return k_exit_ok;
}

Result<int> drop_staged(Context& context, const std::string& word) {
  const auto path = normalize_path(word, context.host.working_directory);
  const auto seen =
      conda::read_as_permitted(context.system, {.queries = {{.path = path, .follow = true}}}, readers(context));
  const auto& led_to = seen.entries.front().resolved;
  std::optional<plan::HostLock> alone; // a copy without a mark may be one that is being made
  if (!context.flags.changes_nothing()) {
    TRY_ASSIGN(auto lock, lock_staging(context));
    alone.emplace(std::move(lock));
  }
  const auto propose = [&]() -> Result<Proposal> {
    TRY_ASSIGN(auto staged, staged_here(context));
    std::erase_if(staged, [&](const conda::StagedCopy& one) {
      return !conda::is_staged_from(one, path) && !conda::is_staged_from(one, led_to) && one.name() != word;
    });
    return Proposal{conda::plan_drop(staged), "no copy of it is staged here"};
  };
  return execute(context, propose).map(&Executed::exit_code);
}

} // namespace sharefs::cli
