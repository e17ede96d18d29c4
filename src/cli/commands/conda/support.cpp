#include "cli/commands/conda/support.hpp"

#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cachefix/guard.hpp"
#include "cli/commands/export/support.hpp"
#include "conda/running.hpp"
#include "config/keys.hpp"

#include <algorithm>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Returns the name of the environment that a path leads to: over a user's link, or over another path to the store.
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

/// Reads the files that the wheel's RECORD lists ("sharefs_guard/storage.py,sha256=...,29000").
Result<conda::GuardFiles> read_wheel(const sys::Files& files, const std::string& site_packages) {
  TRY_ASSIGN(const auto names, files.list(site_packages));
  const auto records = conda::guard_records(names);
  if (records.empty())
    return fail(ErrorCode::not_found, site_packages + " has no sharefs_guard");
  TRY_ASSIGN(const auto record, files.read(join_path(site_packages, records.front() + "/RECORD")));
  conda::GuardFiles found;
  for (const auto& row : split_lines(record)) {
    const std::string name(row.substr(0, row.find(',')));
    TRY_ASSIGN(auto text, files.read(join_path(site_packages, name)));
    found.push_back({name, std::move(text)});
  }
  return found;
}

/// Returns the files of the guard's wheel, which is installed with sharefs; none unless `caches.guard` is `always`. If
/// they cannot be read the command gives a warning and continues without them.
conda::GuardFiles guard_files(Context& context) {
  const auto config = context.config_if_any();
  if (!config || *config == nullptr || (*config)->caches.guard != "always")
    return {};
  const auto program = context.system.entry({.path = "/proc/self/exe"}).link_target;
  Result<conda::GuardFiles> found;
  for (const auto& guard : cachefix::guard_directories(program))
    if (found = read_wheel(context.system.files(), join_path(parent_path(guard), "site-packages")); found)
      return *std::move(found);
  context.console.warning("the environment gets no guard: " + found.error().message);
  return {};
}

} // namespace

Result<const config::Conda*> conda_section(Context& context, const std::string& hint) {
  TRY_ASSIGN(const auto config, context.config());
  if (!config->conda)
    return fail(ErrorCode::config, config->file + " has no section `conda:`", hint);
  return &*config->conda;
}

std::vector<conda::Homes> homes_of(const config::Conda& conda, const sys::Identity& self) {
  std::vector<conda::Homes> homes;
  for (const auto& place : conda.homes)
    if (self.uid == 0)
      homes.push_back({place.users, place.conda});
    else if (std::ranges::find(place.users, self.user) != place.users.end())
      return {{{self.user}, place.conda}};
  if (self.uid != 0) // a user whom sharefs.yaml does not name
    homes = {{{self.user}, conda.homes.empty() ? config::Homes{}.conda : conda.homes.front().conda}};
  return homes;
}

std::string stage_of(Context& context, const std::string& environment) {
  const auto config = context.config_if_any();
  return config && *config != nullptr && (*config)->conda ? (*config)->conda->settings_of(environment).stage : "";
}

Result<void> check_environment_name(const std::string& name) {
  const auto key = std::ranges::find(config::keys(), "conda.envs[].name", &config::Key::name);
  const auto complaint = config::check_value(*key, name);
  return complaint
             ? fail(ErrorCode::usage, "environment `" + shell_quote(name) + "` " + complaint->what, complaint->hint)
             : Result<void>{};
}

bool is_directory_here(Context& context, const std::string& word) {
  const auto here = join_path(context.host.working_directory, word);
  return context.system.entry({.path = here, .follow = true}).kind == sys::EntryKind::directory;
}

Result<std::string> environment_path(Context& context, const std::string& word) {
  if (word.find('/') != std::string::npos || word == "." || word == "..")
    return normalize_path(word, context.host.working_directory);
  TRY(check_environment_name(word));
  const auto hint = fmt::format("name the environment by its path: `./{}`", word);
  auto section = conda_section(context, hint);
  if (!section && is_directory_here(context, word))
    section.error().hint = hint;
  return section.map([&](const config::Conda* conda) { return join_path(conda->store, word); });
}

std::vector<conda::Share> shares_of(sys::System& system, const config::Config& config, const std::string& path) {
  std::vector<conda::Share> shares;
  const auto mounts = system.mounts();
  for (const auto& mount : config.mounts) {
    config::Config one;
    one.servers.push_back({mount.server, mount.address, {}, {}});
    const bool bare = is_under(path, mount.at) && mounts && mounts->at(mount.at) == nullptr;
    shares.push_back({mount.name, mount.at, bare && !find_own_servers(system, one).servers.empty()});
  }
  return shares;
}

Result<void> check_share(Context& context, const std::string& path) {
  TRY_ASSIGN(const auto config, context.config_if_any());
  TRY_ASSIGN(const auto mounts, context.system.mounts());
  const auto shares = config == nullptr ? std::vector<conda::Share>() : shares_of(context.system, *config, path);
  const auto* share = conda::unmounted_share(path, shares, mounts);
  if (share == nullptr)
    return {};
  return fail(ErrorCode::failed,
              fmt::format("{}: share `{}` that holds it is not mounted on `{}` [SF301]", path, share->name, share->at),
              "run `sharefs mount " + shell_quote(share->name) + "`");
}

Result<StoreName> store_name(Context& context, const std::string& word) {
  TRY_ASSIGN(const auto conda, conda_section(context));
  const auto& store = conda->store;
  auto name = word;
  if (word.find('/') != std::string::npos) {
    const auto path = normalize_path(word, context.host.working_directory);
    TRY_ASSIGN(name,
               parent_path(path) == store ? Result<std::string>(base_name(path)) : name_of_path(context, store, path));
  }
  TRY(check_environment_name(name));
  return StoreName{store, std::move(name)};
}

Result<std::uint64_t> limit_of(const Arguments& arguments) {
  const auto word = arguments.value("limit");
  const auto limit = word ? parse_size(*word).value_or(0) : 0;
  if (word && limit == 0)
    return fail(ErrorCode::usage, fmt::format("--limit: `{}` is no size", *word), "bytes a second: 500K, 200M, 1G");
  return limit;
}

Result<int> for_each_environment(Context& context, const std::vector<std::string>& names,
                                 const std::function<Result<int>(const std::string& name)>& work) {
  if (context.flags.json)
    return fail(ErrorCode::usage, "--json prints one document for one environment", "name it");
  if (names.empty())
    context.console.message("there is no shared environment");
  std::vector<int> codes;
  for (const auto& name : names) {
    context.console.message(name + ":");
    const auto done = work(name);
    if (!done)
      context.console.error(done.error());
    codes.push_back(done ? *done : exit_code_of(done.error()));
    if (codes.back() == k_exit_interrupted)
      return k_exit_interrupted;
  }
  if (std::ranges::count(codes, k_exit_pending) > 0)
    return k_exit_pending;
  const auto good = static_cast<std::size_t>(std::ranges::count(codes, k_exit_ok));
  return exit_code_for(good, codes.size() - good);
}

std::string format_time(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(std::time_t{seconds}));
}

sys::LeaseRequest lease_settings(const Context& context) {
  return {.path = {}, .what = shell_join(context.argv), .wait = context.flags.wait};
}

Result<Executed> execute_switch(Context& context, Proposal proposal,
                                const std::function<Result<conda::NewGeneration>()>& make) {
  std::optional<conda::NewGeneration> made; // it holds the lease until the steps are done
  proposal.before_groups = [&]() -> Result<void> {
    TRY_ASSIGN(auto done, make());
    made.emplace(std::move(done));
    return made->record.number == 0 ? Result<void>{} : conda::publish(context.system, *made);
  };
  auto executed = execute(context, [&]() -> Result<Proposal> { return proposal; });
  if (executed && executed->applied() && made)
    conda::note_sound(context.system, *made);
  if (executed && made && made->environment.current != 0 && executed->applied() && !executed->report->ok() &&
      made->record.number != 0 && plan::is_good(executed->report->results.front().outcome))
    context.console.message(fmt::format("generation {0} is complete: `sharefs conda rollback {1} --to {0}` shows it",
                                        made->record.number, shell_quote(made->environment.name)));
  return executed;
}

conda::GenerationSettings generation_settings(Context& context, const std::string& environment, bool adds_guard) {
  const auto settings = (*context.config())->conda->settings_of(environment);
  return {lease_settings(context), settings.protect, settings.image, settings.stage,
          adds_guard ? guard_files(context) : conda::GuardFiles{}};
}

Result<unsigned> generation_argument(const std::string& word) {
  const auto number = word.size() <= 4 ? parse_number<unsigned>(word).value_or(0) : 0;
  return number > 0 ? Result<unsigned>(number)
                    : fail(ErrorCode::usage, fmt::format("`{}` is no number of a generation", word),
                           "`sharefs conda generations ENV` lists them");
}

Result<int> change_environment(Context& context, const std::string& word, const EnvironmentChange& change) {
  TRY_ASSIGN(const auto where, store_name(context, word));
  TRY_ASSIGN(auto environment, change.find(context.system, where.store, where.name));
  std::optional<sys::Lease> lease;
  if (!context.flags.changes_nothing()) {
    TRY_ASSIGN(auto taken, conda::take_lease(context.system, environment, lease_settings(context), say_to(context)));
    lease.emplace(std::move(taken));
    // Under the lease it is final: the former holder may have changed it.
    TRY_ASSIGN(environment, change.find(context.system, where.store, where.name));
  }
  TRY_ASSIGN(auto plan, change.make(environment));
  if (lease)
    TRY(lease->check());
  Proposal proposal{std::move(plan), change.nothing};
  bool refused = false;
  if (change.check_again)
    proposal.before_groups = [&]() -> Result<void> {
      const auto now = conda::probe_environment(context.system, where.store, where.name);
      auto answer = now ? change.check_again(*now) : fail(now.error());
      refused = !answer;
      return answer;
    };
  const auto executed = execute(context, [&]() -> Result<Proposal> { return proposal; });
  if (executed && refused)
    TRY(roll_back(context, executed->report->journal_id, "the generations are in use"));
  return executed.map(&Executed::exit_code);
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

Result<std::vector<std::string>> shared_names(Context& context) {
  TRY_ASSIGN(const auto section, conda_section(context));
  TRY(check_share(context, section->store));
  TRY_ASSIGN(const auto seen, see_store(context, conda::generations_path(section->store, ""), true));
  const auto& there = seen.entries.front();
  if (there.kind == sys::EntryKind::directory && there.error_number == 0)
    return there.names;
  if (conda::is_denied(there))
    return fail(there.error());
  TRY_ASSIGN(const auto mounts, context.system.mounts());
  conda::LinkRequest request;
  request.store = section->store;
  request.homes = homes_of(*section, context.system.identity());
  request.shares = shares_of(context.system, **context.config(), request.store);
  auto found = conda::diagnose_store(conda::probe_store(context.system, mounts, request));
  conda::lower_not_shared_yet(found); // then there is none
  for (const auto& one : found)
    if (one.severity != Severity::info)
      return fail(ErrorCode::failed, fmt::format("{}: {} [{}]", one.subject, one.message, one.code),
                  one.fix.empty() ? one.hint : fmt::format("run `{}`", one.fix));
  return there.kind == sys::EntryKind::missing ? Result<std::vector<std::string>>(std::vector<std::string>{})
                                               : fail(there.error());
}

void report_reader(Context& context, const std::string& path, const std::optional<sys::User>& by) {
  if (by)
    context.message_once(fmt::format("{} is read as `{}`: root of this host may not (root_squash)", path, by->name));
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
