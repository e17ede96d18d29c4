#include "cli/commands/conda/worker.hpp"

#include "base/path.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/names.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

Result<int> work_as(Context& context, WorkerTask task) {
  sys::WorkerRequest request;
  request.words.assign(context.argv.begin() + 1, context.argv.end());
  const auto rest = std::ranges::find(request.words, "--");
  request.words.insert(rest, task.more_words.begin(), task.more_words.end());
  request.user = std::move(task.user);
  request.directory = context.host.working_directory;
  request.makes_view = task.makes_view;
  for (const auto& entry : context.host.environment)
    if (entry.starts_with("SHAREFS_"))
      request.environment.push_back(entry);
  request.environment.push_back("SHAREFS_CONFIG=" + context.config_path());
  std::ranges::move(task.environment, std::back_inserter(request.environment));
  if (auto text = context.system.files().read(context.config_path()))
    request.config = std::move(*text);
  context.console.message(fmt::format("working as `{}`: {}", request.user.name, task.why));
  auto code = context.system.run_worker(request);
  context.answered = code.has_value();
  return code;
}

Error nobody_may(Context& context, const std::string& path) {
  std::string server = "the server itself", who = "a user who may read it";
  const auto& config = **context.config();
  for (const auto& mount : config.mounts)
    if (is_under(path, mount.at)) {
      server = mount.server;
      for (const auto& one : config.servers)
        for (const auto& exported : one.exports)
          if (one.name == server && is_under(mount.path, exported.path) && !exported.access.group.empty())
            who = "a member of `" + exported.access.group + "`";
    }
  return {ErrorCode::permission,
          fmt::format("root of this host is nobody on the server of {} (root_squash), and no user of `conda.homes` may "
                      "read it",
                      path),
          fmt::format("run it on {}, or as {}", server, who), ""};
}

namespace {

/// Returns the path that root's command names; nullopt if this process itself has to read it. Errors of sharefs.yaml
/// are reported by the command itself.
std::optional<std::string> path_for_root(Context& context, const Arguments& arguments) {
  if (context.flags.root != "/" || context.system.identity().uid != 0)
    return std::nullopt;
  const auto conda = conda_section(context);
  const auto path = conda ? environment_path(context, arguments.positional.front()) : fail(conda.error());
  return path ? std::optional(*path) : std::nullopt;
}

} // namespace

Result<conda::PermittedEntries> see_store(Context& context, const std::string& store, bool list) {
  auto seen = conda::read_as_permitted(context.system, {.queries = {{.path = store, .follow = true, .list = list}}},
                                       (*context.config())->conda->users());
  if (context.system.identity().uid == 0 && !seen.by && conda::is_denied(seen.entries.front()))
    return fail(nobody_may(context, store));
  return seen;
}

void report_reader(Context& context, const std::string& path, const std::optional<sys::User>& by) {
  if (by)
    context.console.message(fmt::format("{} is read as `{}`: root of this host may not (root_squash)", path, by->name));
}

std::optional<Result<int>> work_as_owner(Context& context, const std::string& path, WorkerTask task) {
  if (context.system.identity().uid != 0)
    return std::nullopt;
  TRY_ASSIGN(const auto seen, see_store(context, path, false));
  const auto& entry = seen.entries.front();
  if (entry.kind == sys::EntryKind::unknown)
    return fail(entry.error());
  if (entry.uid == 0 && seen.by)
    return fail(nobody_may(context, path)); // the users who may read it do not own it
  if (entry.uid == 0 || !entry.exists())
    return std::nullopt;
  TRY_ASSIGN(task.user, conda::owner_of(context.system, entry,
                                        "run it on a host that knows that user, or give it to one of this host"));
  task.why = "to whom " + path + " belongs";
  return work_as(context, std::move(task));
}

std::optional<Result<int>> read_as_permitted_user(Context& context, const Arguments& arguments) {
  const auto path = path_for_root(context, arguments);
  const auto store = path ? (*context.config())->conda->store : "";
  if (!path || !is_under(*path, store)) // an environment outside the store does not need its users
    return std::nullopt;
  TRY_ASSIGN(auto seen, see_store(context, store, true));
  if (!seen.by)
    return std::nullopt;
  WorkerTask task{.user = std::move(*seen.by),
                  .why = fmt::format("root of this host may not read {} (root_squash)", store)};
  return work_as(context, std::move(task));
}

std::optional<Result<int>> change_store_as_owner(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto where, store_name(context, arguments.positional.front()));
  return work_as_owner(context, where.store);
}

std::optional<Result<int>> change_as_owner(Context& context, const Arguments& arguments) {
  const auto path = path_for_root(context, arguments);
  if (!path)
    return std::nullopt;
  TRY_ASSIGN(const auto seen, see_store(context, *path, false));
  const auto& entry = seen.entries.front();
  return seen.by || (entry.shared && entry.exists()) ? work_as_owner(context, *path) : std::nullopt;
}

} // namespace sharefs::cli
