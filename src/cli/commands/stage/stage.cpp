// sharefs stage PATH|ENV: copies a directory of the share, or an environment, to each node's own disk.
#include "cli/commands/stage/stage.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cachefix/store/local_root.hpp"
#include "cli/commands/cachefix_choices.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/execute.hpp"
#include "conda/running.hpp"
#include "conda/staged_path.hpp"
#include "sys/process/interrupt.hpp"
#include "ui/table.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// The directory of copies in a directory for caches.
constexpr std::string_view k_copies = "staged";

/// Returns the directory of images. The default is below `conda.store`, which has one owner: root mounts no other
/// user's images.
Result<std::string> image_store(const config::Config& config) {
  if ((config.stage && !config.stage->store.empty()))
    return config.stage->store;
  if (config.conda)
    return join_path(config.conda->store, ".images");
  return fail(ErrorCode::config, "sharefs.yaml does not say where images of directories lie",
              "add `stage: {store: /PATH/ON/SHARE}`");
}

/// Returns `stage.at`, or the default directory of root's copies.
std::string staged_for_all(const config::Config& config) {
  if (config.stage && !config.stage->at.empty())
    return config.stage->at;
  for (const auto& local : config.caches.local)
    if (local.find('$') == std::string::npos)
      return join_path(local, k_copies);
  return "/var/cache/sharefs/staged";
}

/// True if this user's copies need a directory of their own. Without `stage.at` root's copies lie below a directory in
/// which every user may create names, so users must not share names with root or with each other.
bool has_own_place(Context& context) {
  const auto& config = **context.config();
  return context.system.identity().uid != 0 && (!config.stage || config.stage->at.empty());
}

/// Returns the directory of this user's copies. Error `config` if no directory for caches can be used.
Result<std::string> place_of_copies(Context& context) {
  if (!has_own_place(context))
    return staged_for_all(**context.config());
  TRY_ASSIGN(const auto choices, choices_of(context));
  const auto root = cachefix::find_local_root(context.system, choices.local, context.system.identity());
  if (root.directory.empty())
    return fail(ErrorCode::config, root.problem, root.hint);
  return join_path(root.directory, k_copies);
}

Result<conda::PathStagingRequest> path_request(Context& context, const Arguments& arguments, const std::string& word) {
  TRY_ASSIGN(const auto config, context.config());
  const auto asked = normalize_path(word, context.host.working_directory);
  TRY(check_share(context, asked));
  TRY_ASSIGN(auto request, conda::find_directory(context.system, asked, readers(context),
                                                 staged_paths_directories(context), arguments.flag("pack")));
  TRY_ASSIGN(request.at, place_of_copies(context));
  request.is_own = has_own_place(context);
  TRY_ASSIGN(request.store, image_store(*config));
  const auto is_named = [&](const std::string& path) { return config->stage && contains(config->stage->paths, path); };
  request.binds = is_named(request.path) && context.system.identity().uid == 0;
  if (is_named(request.path) && !request.binds && !arguments.flag("pack"))
    context.console.message(fmt::format("`stage.paths`: only root can mount a copy over {}", asked));
  if (is_named(asked) && !is_named(request.path))
    context.console.warning(fmt::format("`stage.paths`: {} is a link, and no copy is mounted over it", asked),
                            fmt::format("name the directory itself there: {}", request.path));
  auto reader = std::move(request.how.copying.reader);
  TRY_ASSIGN(request.how, copying_by(context, arguments));
  request.how.copying.reader = std::move(reader);
  request.how.copying.anew = "delete it there, then run the command again, which makes it anew";
  return request;
}

/// Makes the image as a user who may write in the store: as root, or by a worker as the store's owner. Returns the exit
/// code. `only`: nothing follows, so the worker's answer is the answer of the command.
Result<int> pack_as_permitted_user(Context& context, const conda::PathStagingRequest& request,
                                   const conda::PackedPath& packed, bool only) {
  TRY_ASSIGN(auto packer, conda::find_packer(context.system, request.store, readers(context)));
  if (!packer.user)
    return pack_path(context.system, request, packed, say_to(context)).map([] { return k_exit_ok; });
  const Argv argv{"sharefs", "stage", request.path, "--pack", "--yes"};
  Context own(context.host, context.system, context.console, context.flags, argv);
  auto code =
      work_as(only ? context : own, {.user = std::move(*packer.user), .why = "to whom " + packer.place + " belongs"});
  if (!code || only || *code == k_exit_ok)
    return code;
  return *code == k_exit_interrupted ? fail(ErrorCode::interrupted, "nothing was staged")
                                     : fail(ErrorCode::failed, "its owner could not make the image");
}

/// True if something must be made on the share first: the directory as it is now has neither an image nor a list.
bool wants_packing(const conda::PackedPath& packed) {
  return !packed.exists && packed.survey.files > 0;
}

/// Surveys the directory, and makes its image on the share if this host can mount one. A list of a few large files is
/// not made for one node alone.
Result<conda::PackedPath> packed_path(Context& context, const conda::PathStagingRequest& request) {
  auto packed = conda::survey_path(context.system, request, say_to(context));
  if (!packed || !wants_packing(*packed) || conda::is_few_large(packed->survey) ||
      !conda::why_no_images(context.system).empty())
    return packed;
  TRY_ASSIGN(const auto agreed, agree_to_pack(context, request.path, packed->survey));
  if (!agreed)
    return packed;
  if (auto made = pack_as_permitted_user(context, request, *packed, false); !made) {
    if (made.error().code == ErrorCode::interrupted)
      return fail(made.error());
    context.console.warning("it gets no image: " + made.error().message, made.error().hint);
  }
  return packed;
}

Result<int> stage_path(Context& context, const Arguments& arguments, const std::string& word) {
  TRY_ASSIGN(const auto request, path_request(context, arguments, word));
  const auto say = say_to(context);
  sys::install_interrupt_handlers(); // so that unfinished files are removed
  if (arguments.flag("pack")) {
    TRY_ASSIGN(const auto packed, conda::survey_path(context.system, request, say));
    context.envelope.fields["packed"] = conda::text_of(packed.survey);
    if (!wants_packing(packed))
      return k_exit_ok;
    return context.flags.changes_nothing() ? Result<int>(k_exit_pending)
                                           : pack_as_permitted_user(context, request, packed, true);
  }
  auto packed = Result<conda::PackedPath>(conda::PackedPath{});
  if (const auto told = arguments.value("packed")) {
    TRY_ASSIGN(auto survey, survey_for_all(*told));
    packed->image = conda::packed_image(request, survey);
    packed->survey = std::move(survey);
  } else {
    packed = packed_path(context, request);
  }
  if (!packed)
    return fail(packed.error());
  conda::Staging staging;
  std::optional<plan::HostLock> alone; // held until the steps are done
  const auto propose = [&]() -> Result<Proposal> {
    if (auto there =
            conda::copy_of_root(context.system, staged_for_all(**context.config()), request.path, packed->survey);
        !there.empty())
      return Proposal{{}, there + " is there"};
    TRY_ASSIGN(staging, conda::plan_path_staging(context.system, request, *packed));
    Proposal proposal{staging.made.plan, staging.nothing};
    if (staging.why_files.empty() && context.system.identity().uid == 0)
      plan_staged_unit(context, true, proposal.plan);
    proposal.takes_long = staging.made.copies;
    proposal.before_groups = [&]() -> Result<void> {
      if (request.is_own)
        TRY(cachefix::make_own_directory(context.system, parent_path(request.at)));
      TRY_ASSIGN(auto copied, conda::copy_path(context.system, request, staging, say));
      if (copied)
        alone.emplace(std::move(*copied));
      return {};
    };
    return proposal;
  };
  return execute(context, propose).map(&Executed::exit_code);
}

// ---- --list, --drop ----

/// Returns the path of the environment, or of the directory, that the copy is of.
std::string staged_path(const conda::StagedCopy& copy) {
  const auto generation = conda::in_generation(copy.source());
  return generation ? join_path(generation->store, generation->name) : copy.source();
}

/// Prints the copies on this host.
Result<int> list_staged(Context& context) {
  TRY_ASSIGN(const auto config, context.config());
  auto directories = staged_paths_directories(context);
  directories.merge(stage_directories(*config));
  const auto uid = static_cast<unsigned>(context.system.identity().uid);
  const auto staged = conda::list_staged_paths(context.system, directories, {0, uid});
  ui::Table table({{"PATH"}, {"COPY"}, {"SIZE", true}, {"STATE"}});
  auto json = Json::array();
  for (const auto& one : staged) {
    const bool by_image = one.image.kind == sys::EntryKind::file;
    const auto state = conda::state_of(one);
    const auto path = staged_path(one);
    table.add({{path}, {one.name()}, {by_image ? format_bytes(one.image.size) : "-"}, {state}});
    json.push_back({{"path", to_utf8(path)},
                    {"copy", to_utf8(one.tree.path)},
                    {"bytes", by_image ? Json(one.image.size) : Json()},
                    {"state", state}});
  }
  context.show(table, "staged", std::move(json), "nothing is staged here");
  return k_exit_ok;
}

/// Removes copies. `word` is a path, or the beginning of the hash of a copy.
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
    TRY(context.config());
    const auto made_by = [&](unsigned maker) {
      auto staged = conda::list_staged_paths(context.system, staged_paths_directories(context), {maker});
      std::erase_if(staged, [&](const conda::StagedCopy& one) {
        return !conda::is_staged_from(one, path) && !conda::is_staged_from(one, led_to) && one.name() != word;
      });
      return staged;
    };
    const auto own = made_by(static_cast<unsigned>(context.system.identity().uid));
    const auto of_root = own.empty() ? made_by(0) : std::vector<conda::StagedCopy>{};
    return Proposal{conda::plan_drop(own), of_root.empty() ? "no copy of it is staged here"
                                                           : conda::only_of_root(of_root.front().tree.path,
                                                                                 "stage --drop " + shell_quote(word))};
  };
  return execute(context, propose).map(&Executed::exit_code);
}

Result<int> run_stage_command(Context& context, const Arguments& arguments) {
  if (context.flags.root != "/")
    return fail(ErrorCode::unsupported, "staging works on a running system: --root is not possible here");
  const bool list = arguments.flag("list");
  if (list == (arguments.positional.size() == 1))
    return fail(ErrorCode::usage, "name a directory of the share or an environment, or give --list");
  if (list && arguments.flag("drop"))
    return fail(ErrorCode::usage, "--list and --drop exclude each other");
  if (list)
    return list_staged(context);
  const auto& word = arguments.positional.front();
  const bool is_hash = arguments.flag("drop") && conda::is_hash(word, conda::k_hash_digits);
  if (!is_path(word) && !is_hash) {
    auto one = arguments;
    if (arguments.flag("drop"))
      one.flags.insert("remove");
    auto code = stage_environment(context, one, word);
    if (!code && code.error().code == ErrorCode::not_found && is_directory_here(context, word))
      code.error().hint = fmt::format("name the directory by its path: `./{}`", word);
    return code;
  }
  return arguments.flag("drop") ? drop_staged(context, word) : stage_path(context, arguments, word);
}

} // namespace

std::vector<std::string> readers(Context& context) {
  const auto config = context.config();
  return config && (*config)->conda ? (*config)->conda->users() : std::vector<std::string>{};
}

std::set<std::string> staged_paths_directories(Context& context) {
  std::set<std::string> directories{staged_for_all(**context.config())};
  if (!has_own_place(context))
    return directories;
  if (const auto choices = choices_of(context))
    for (const auto& own : cachefix::own_directories(context.system, choices->local, context.system.identity()))
      directories.insert(join_path(own, k_copies));
  return directories;
}

std::set<std::string> stage_directories(const config::Config& config) {
  std::set<std::string> directories{staged_for_all(config)};
  if (!config.conda)
    return directories;
  directories.insert(config.conda->stage);
  for (const auto& one : config.conda->envs)
    if (!one.stage.empty())
      directories.insert(one.stage);
  return directories;
}

extern const CommandSpec k_stage_command{
    .name = "stage",
    .summary = "Bring a directory of the share, or an environment, to this host's own disk",
    .description =
        "A directory of many files (a dataset, code) is packed into one image on the share first (`stage.store`), once "
        "for all nodes; its image is copied to `stage.at`, checked, and mounted read-only there, and again at boot. "
        "Few large files are copied as they lie. What is there and right is not copied. Where `stage.paths` names the "
        "directory, the copy is mounted over it on this node: who asks for the path reads the copy; without that "
        "nothing reads it but by its own path (--list). With --on NODES the nodes hand it on from one to the next "
        "while it comes, so that the server sends it once; where ssh does not lead from one node to another, it comes "
        "from the share, and the answer says so. ENV is an environment of the store, as of `conda stage`.",
    .example = "sharefs stage /data/share/datasets/c4\n"
               "sharefs --on all stage llm_train\n"
               "sharefs stage --list\n"
               "sharefs stage --drop /data/share/datasets/c4",
    .changes = true,
    .positional = {.name = "PATH|ENV", .help = "a directory of the share, or an environment of the store", .max = 1},
    .options = {k_limit_option,
                {.names = "--list", .help = "list the copies on this host"},
                {.names = "--drop", .help = "remove its copies, or the one with this hash (--list)"},
                {.names = "--pack", .help = "only make the image on the share"},
                {.names = "--packed", .value = "TEXT", .help = "what `--on NODES` has found out about the directory"},
                k_upstreams_option},
    .on_nodes = true,
    .before_nodes = survey_for_nodes,
    .run = run_stage_command,
};

} // namespace sharefs::cli
