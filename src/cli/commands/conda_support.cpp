#include "cli/commands/conda_support.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_names.hpp"
#include "cli/tree_progress.hpp"
#include "conda/running.hpp"
#include "conda/verified.hpp"
#include "plan/apply.hpp"

#include <array>
#include <cerrno>
#include <ctime>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// The environment of the store that a path leads to: a user's link, or the store by another way.
Result<std::string> name_of_path(Context& context, const std::string& store, const std::string& path) {
  const auto entries =
      context.system.entries({.queries = {{.path = path, .follow = true}, {.path = store, .follow = true}}});
  for (const auto& entry : entries)
    if (entry.kind == sys::EntryKind::unknown)
      return fail(entry.error());
  const auto& there = entries[0].resolved;
  if (parent_path(there) == entries[1].resolved && there != entries[1].resolved)
    return base_name(there);
  const auto generation = conda::in_generation(there);
  if (!generation || !generation->rest.empty() || generation->store != entries[1].resolved)
    return fail(ErrorCode::usage, fmt::format("{} does not lead to an environment of the store {}", path, store),
                "`sharefs conda list` shows what is shared");
  if (context.system.entry({.path = join_path(store, generation->name), .follow = true}).resolved == there)
    return generation->name;
  return fail(ErrorCode::usage,
              fmt::format("{} is generation {} of `{}`, which is not the present one", path, generation->number,
                          generation->name),
              fmt::format("`sharefs conda rollback {} --to {}` makes it so", shell_quote(generation->name),
                          generation->number));
}

} // namespace

Result<StoreName> store_name(Context& context, const std::string& word) {
  const auto conda = conda_section(context);
  if (!conda)
    return fail(conda.error());
  const auto& store = (*conda)->store;
  auto name = word;
  if (word.find('/') != std::string::npos) {
    const auto path = normalize_path(word, context.host.working_directory);
    auto named = parent_path(path) == store ? Result<std::string>(base_name(path)) : name_of_path(context, store, path);
    if (!named)
      return fail(named.error());
    name = std::move(*named);
  }
  if (auto sound = check_environment_name(name); !sound)
    return fail(sound.error());
  return StoreName{store, std::move(name)};
}

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

/// Where root's command line leads: a path, or a name in the store. nullopt: for nobody else than itself to read; what
/// the command needs of sharefs.yaml it says itself.
std::optional<std::string> path_for_root(Context& context, const Arguments& arguments) {
  if (context.flags.root != "/" || context.system.identity().uid != 0)
    return std::nullopt;
  const auto conda = conda_section(context);
  const auto path = conda ? environment_path(context, arguments.positional.front()) : fail(conda.error());
  return path ? std::optional(*path) : std::nullopt;
}

} // namespace

Result<conda::Seen> see_store(Context& context, const std::string& store, bool list) {
  auto seen = conda::see(context.system, {.queries = {{.path = store, .follow = true, .list = list}}},
                         (*context.config())->conda->users());
  if (context.system.identity().uid == 0 && !seen.by && conda::is_denied(seen.entries.front()))
    return fail(nobody_may(context, store));
  return seen;
}

void say_read_by(Context& context, const std::string& path, const std::optional<sys::User>& by) {
  if (by)
    context.console.message(fmt::format("{} is read as `{}`: root of this host may not (root_squash)", path, by->name));
}

Result<std::optional<int>> work_as_owner(Context& context, const std::string& path, WorkerTask task) {
  if (context.system.identity().uid != 0)
    return std::nullopt;
  const auto seen = see_store(context, path, false);
  if (!seen)
    return fail(seen.error());
  const auto& entry = seen->entries.front();
  if (entry.kind == sys::EntryKind::unknown)
    return fail(entry.error());
  if (entry.uid == 0 && seen->by)
    return fail(nobody_may(context, path)); // those who may read it do not own it
  if (entry.uid == 0 || !entry.exists())
    return std::nullopt;
  auto owner = context.system.user(std::to_string(entry.uid));
  if (!owner)
    return fail(ErrorCode::permission,
                fmt::format("{} belongs to user {}, whom this host does not know", path, entry.uid),
                "run it on a host that knows that user, or give it to one of this host");
  task.user = std::move(*owner);
  task.why = "to whom " + path + " belongs";
  return work_as(context, std::move(task)).map([](int code) { return std::optional(code); });
}

Result<std::optional<int>> read_as_whoever_may(Context& context, const Arguments& arguments) {
  const auto path = path_for_root(context, arguments);
  const auto store = path ? (*context.config())->conda->store : "";
  if (!path || !is_under(*path, store)) // what lies elsewhere has nothing to do with the store
    return std::nullopt;
  auto seen = see_store(context, store, true);
  if (!seen)
    return fail(seen.error());
  if (!seen->by)
    return std::nullopt;
  WorkerTask task{.user = std::move(*seen->by),
                  .why = fmt::format("root of this host may not read {} (root_squash)", store)};
  return work_as(context, std::move(task)).map([](int code) { return std::optional(code); });
}

Result<std::optional<int>> change_as_owner(Context& context, const Arguments& arguments) {
  const auto path = path_for_root(context, arguments);
  if (!path)
    return std::nullopt;
  const auto seen = see_store(context, *path, false);
  if (!seen)
    return fail(seen.error());
  const auto& entry = seen->entries.front();
  return seen->by || (entry.shared && entry.exists()) ? work_as_owner(context, *path) : std::nullopt;
}

Result<conda::SharedEnvironment> shared_environment(Context& context, const StoreName& where) {
  auto found = conda::probe_environment(context.system, where.store, where.name);
  if (!found)
    return found;
  if (found->current != 0 && found->find(found->current) != nullptr)
    return found;
  if (found->current != 0)
    return fail(
        ErrorCode::not_found, fmt::format("{} leads to generation {}, which is gone", found->path(), found->current),
        found->generations.empty() ? "restore it from a backup"
                                   : fmt::format("`sharefs conda rollback {} --to {}`", where.name, found->last()));
  if (found->lost_its_name())
    return fail(ErrorCode::not_found,
                fmt::format("{} is gone, as `conda env remove` leaves it; generation {} of it is there", found->path(),
                            found->last()),
                fmt::format("`sharefs conda rollback {}` brings it back", where.name));
  if (found->entry.kind == sys::EntryKind::directory)
    return fail(ErrorCode::unsupported, found->path() + " is a plain directory, without generations",
                fmt::format("`sharefs conda share {} --adopt` makes it generation 1 where it lies", where.name));
  return fail(ErrorCode::not_found, fmt::format("there is no shared environment `{}` in {}", where.name, where.store),
              fmt::format("`sharefs conda share {}` moves one of a user there", where.name));
}

Result<sys::Lease> take_lease(Context& context, const conda::SharedEnvironment& environment) {
  sys::LeaseRequest request;
  request.path = join_path(environment.root.path, "lock");
  request.what = shell_join(context.argv);
  request.wait = context.flags.wait;
  bool said = false;
  auto lease = sys::Lease::take(context.system, request, [&](const sys::LeaseHolder& holder) {
    if (!said)
      context.console.message("waiting: " + holder.text() + " is at work on `" + environment.name + "`");
    said = true;
  });
  if (!lease && lease.error().code == ErrorCode::permission) {
    const auto owner = context.system.user(std::to_string(environment.root.uid));
    const auto name = owner ? owner->name : "uid " + std::to_string(environment.root.uid);
    return fail(ErrorCode::permission,
                fmt::format("`{}` may not change `{}`: {} belongs to `{}`", context.system.identity().user,
                            environment.name, environment.root.path, name),
                fmt::format("run it as `{}` or root", name));
  }
  if (!lease)
    return lease;
  // What the holder before us has changed may have been on another host.
  const auto fresh = sys::look_afresh(context.system, {environment.store, environment.root.path}, request.deadline);
  return fresh ? std::move(lease) : fail(fresh.error());
}

void clear_uses(Context& context, const std::string& store, const std::string& name, std::vector<conda::Use> ended) {
  constexpr std::size_t k_at_once = 32;
  const auto self = context.system.identity();
  std::erase_if(ended, [&](const conda::Use& use) { return self.uid != 0 && use.uid != self.uid; });
  ended.resize(std::min(ended.size(), k_at_once));
  const auto uses = join_path(conda::generations_path(store, name), "uses");
  for (const auto& use : ended) {
    auto note = plan::remove_file(join_path(uses, conda::use_name(use)), "");
    if (use.uid != self.uid) {
      auto user = context.system.user(std::to_string(use.uid));
      if (!user)
        continue;
      note.actor = plan::Actor{std::move(*user), uses};
    }
    if (auto gone = plan::apply_action(note, context.system); !gone && context.flags.verbose)
      context.console.message("a note of an ended process is left: " + gone.error().message);
  }
}

Result<conda::EnvironmentState> read_environment(Context& context, const conda::EnvironmentRequest& request) {
  TreeProgress progress(context, "reading " + request.path);
  return conda::probe(context.system, request, progress.on());
}

void note_verified(Context& context, const std::string& store, const std::string& name, const conda::Generation& record,
                   bool good) {
  const auto& files = context.system.files();
  const auto path = conda::verified_path(store, name);
  const auto before = files.read_if_exists(path, conda::k_largest_note);
  if (!before || (!good && conda::verified_at(before->value_or(""), record) == 0))
    return;
  auto done = before->has_value() ? files.remove(path) : Result<void>{}; // it may be another user's
  if (done && good)
    done = files.write_if(path, std::nullopt,
                          conda::format_verified(record, std::chrono::system_clock::to_time_t(context.system.now())));
  if (!done && context.flags.verbose)
    context.console.message("`conda list` does not show that it was verified now: " + done.error().message);
}

bool is_verified(Context& context, const std::string& store, const std::string& name, const conda::Generation& record) {
  const auto text = context.system.files().read_if_exists(conda::verified_path(store, name), conda::k_largest_note);
  return text && conda::verified_at(text->value_or(""), record) != 0;
}

Result<conda::Generation> new_record(Context& context, const std::string& path, std::string command) {
  auto contents = conda::read_contents(context.system, path);
  if (!contents)
    return fail(contents.error());
  const auto self = context.system.identity();
  conda::Generation record;
  record.created = std::chrono::system_clock::to_time_t(context.system.now());
  record.user = self.user;
  record.host = self.hostname;
  record.command = std::move(command);
  record.python = std::move(contents->python);
  record.packages = std::move(contents->packages);
  return record;
}

Result<CopyRequest> copy_request(Context& context, const Arguments& arguments) {
  auto where = store_name(context, arguments.positional.front());
  if (!where)
    return fail(where.error());
  CopyRequest request{*where, (*context.config())->conda->settings_of(where->name)};
  if (const auto word = arguments.value("limit")) {
    request.bytes_per_second = parse_size(*word).value_or(0);
    if (request.bytes_per_second == 0)
      return fail(ErrorCode::usage, fmt::format("--limit: `{}` is no size", *word), "bytes a second: 500K, 200M, 1G");
  }
  return request;
}

Result<unsigned> generation_argument(const std::string& word) {
  const auto number = word.size() <= 4 && word.find_first_not_of("0123456789") == std::string::npos && !word.empty()
                          ? std::stoul(word)
                          : 0;
  return number > 0 ? Result<unsigned>(static_cast<unsigned>(number))
                    : fail(ErrorCode::usage, fmt::format("`{}` is no number of a generation", word),
                           "`sharefs conda generations ENV` lists them");
}

std::string format_time(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &utc)};
}

} // namespace sharefs::cli
