// sharefs stage PATH|ENV: a directory of the share, or an environment, on each node's own disk.
#include "cli/commands/stage/stage.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/store/local_root.hpp"
#include "cli/commands/cachefix_choices.hpp"
#include "cli/commands/conda/names.hpp"
#include "cli/commands/conda/stage.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/conda/worker.hpp"
#include "cli/commands/stage/hand_on.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "cli/say.hpp"
#include "conda/homes.hpp"
#include "conda/staged_path.hpp"
#include "sys/process/interrupt.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

bool is_path(const std::string& word) {
  return word.find('/') != std::string::npos || word.starts_with('.');
}

/// Below `conda.store`, which has one owner: root mounts no other user's images.
Result<std::string> image_store(const config::Config& config) {
  if ((config.stage && !config.stage->store.empty()))
    return config.stage->store;
  if (config.conda)
    return join_path(config.conda->store, ".images");
  return fail(ErrorCode::config, "sharefs.yaml does not say where images of directories lie",
              "add `stage: {store: /PATH/ON/SHARE}`");
}

/// Where copies lie in a user's directory for caches.
std::string copies_below(const std::string& own) {
  return join_path(own, "staged");
}

/// `stage.at`, or where root's copies lie without it.
std::string staged_for_all(const config::Config& config) {
  if (config.stage && !config.stage->at.empty())
    return config.stage->at;
  for (const auto& local : config.caches.local)
    if (local.find('$') == std::string::npos)
      return join_path(local, "staged");
  return "/var/cache/sharefs/staged";
}

/// Without `stage.at` root's copies lie below a directory in which every user may make names: each user's lie in an own
/// one, which takes no name from root and the others.
bool has_own_place(Context& context) {
  const auto& config = **context.config();
  return context.system.identity().uid != 0 && (!config.stage || config.stage->at.empty());
}

/// Where this user's copies go. Error `config`: none of the directories for caches can be used.
Result<std::string> place_of_copies(Context& context) {
  if (!has_own_place(context))
    return staged_for_all(**context.config());
  const auto choices = choices_of(context);
  if (!choices)
    return fail(choices.error());
  const auto root = cachefix::find_local_root(context.system, choices->local, context.system.identity());
  if (root.directory.empty())
    return fail(ErrorCode::config, root.problem, root.hint);
  return copies_below(root.directory);
}

/// By root, or a user of `conda.homes` where its server refuses root.
conda::Seen see_on_share(Context& context, sys::EntryQuery query) {
  const auto config = context.config();
  const bool has_users = config && (*config)->conda;
  return conda::see(context.system, {.queries = {std::move(query)}},
                    has_users ? (*config)->conda->users() : std::vector<std::string>{});
}

Result<conda::PathStagingRequest> path_request(Context& context, const Arguments& arguments, const std::string& word) {
  const auto config = context.config();
  if (!config)
    return fail(config.error());
  conda::PathStagingRequest request;
  const auto asked = normalize_path(word, context.host.working_directory);
  if (auto mounted = check_share(context, asked); !mounted)
    return fail(mounted.error());
  const auto seen = see_on_share(context, {.path = asked, .follow = true, .list = true});
  const auto& entry = seen.entries.front();
  if (entry.kind == sys::EntryKind::unknown)
    return fail(entry.error());
  // What this host remembers may answer root for the directory, and not for those above it.
  const auto above = see_on_share(context, {.path = parent_path(asked), .list = true});
  if (entry.exists() && entry.kind != sys::EntryKind::directory)
    return fail(ErrorCode::usage, asked + " is no directory",
                fmt::format("stage the one that it lies in: {}", shell_quote(parent_path(asked))));
  if (entry.kind != sys::EntryKind::directory)
    return fail(ErrorCode::not_found, fmt::format("there is no directory {}", asked),
                "name a directory of the share, or an environment of the store");
  auto at = place_of_copies(context);
  if (!at)
    return fail(at.error());
  request.at = std::move(*at);
  request.is_own = has_own_place(context);
  if (!entry.shared)
    for (const auto& copy : conda::list_staged_paths(context.system, staged_paths_directories(context)))
      if (copy.is_bound && copy.path == asked)
        request.bound = copy.survey();
  const bool is_of_share = entry.shared || request.bound;
  if (!is_of_share && !context.flags.on.empty())
    return fail(ErrorCode::usage, asked + " lies on this host's own disk", "`sharefs mirror push` brings it to nodes");
  if (!is_of_share && !arguments.flag("pack"))
    return fail(ErrorCode::usage, asked + " lies on this host's own disk already");
  if (entry.resolved.find('\n') != std::string::npos) // marks of copies are lines
    return fail(ErrorCode::unsupported, entry.resolved + " has a line break in its name",
                "stage a directory that has none");
  request.path = entry.resolved;
  auto store = image_store(**config);
  if (!store)
    return fail(store.error());
  request.store = std::move(*store);
  const auto is_named = [&](const std::string& path) {
    return (*config)->stage && contains((*config)->stage->paths, path);
  };
  request.binds = is_named(request.path) && context.system.identity().uid == 0;
  if (is_named(request.path) && !request.binds)
    context.console.message(fmt::format("`stage.paths`: only root can mount a copy over {}", asked));
  if (is_named(asked) && !is_named(request.path))
    context.console.warning(fmt::format("`stage.paths`: {} is a link, and no copy is mounted over it", asked),
                            fmt::format("name the directory itself there: {}", request.path));
  auto how = copying_by(context, arguments);
  if (!how)
    return fail(how.error());
  request.how = std::move(*how);
  request.how.as = seen.by ? seen.by : above.by;
  request.how.anew = "delete it there, then run the command again, which makes it anew";
  return request;
}

/// Makes the image, as whoever may write in the store: root, or a worker of the store's owner. The exit code; that is
/// all that is to be done (`only`): the worker's answer is the command's.
Result<int> pack_as_whoever_may(Context& context, const conda::PathStagingRequest& request,
                                const conda::PackedPath& packed, bool only) {
  const auto seen = see_on_share(context, {.path = request.store, .follow = true});
  const auto& store = seen.entries.front();
  auto place = store;
  if (!store.exists())
    place = context.system.entries({.queries = {{.path = store.ancestor, .follow = true}}, .as = seen.by}).front();
  const auto self = context.system.identity().uid;
  if (self != 0 || (place.uid == 0 && (store.exists() || !seen.by)))
    return pack_path(context.system, request, packed, say_to(context)).map([] { return k_exit_ok; });
  auto owner = place.uid == 0 ? Result<sys::User>(*seen.by) : context.system.user(std::to_string(place.uid));
  if (!owner)
    return fail(ErrorCode::permission,
                fmt::format("{} belongs to user {}, whom this host does not know", place.path, place.uid));
  const Argv argv{"sharefs", "stage", request.path, "--pack", "--yes"};
  Context own(context.host, context.system, context.console, context.flags, argv);
  const auto code =
      work_as(only ? context : own, {.user = std::move(*owner), .why = "to whom " + place.path + " belongs"});
  if (!code || only || *code == k_exit_ok)
    return code;
  return *code == k_exit_interrupted ? fail(ErrorCode::interrupted, "nothing was staged")
                                     : fail(ErrorCode::failed, "its owner could not make the image");
}

/// What one machine has found out for all.
Result<tree::Survey> survey_for_all(const std::string& text) {
  auto survey = conda::survey_in(text);
  if (!survey)
    return fail(ErrorCode::usage, fmt::format("--packed: `{}` is not what `--on NODES` says", text));
  return std::move(*survey);
}

/// Something is to be made on the share first: there is neither an image of what it holds now, nor a list.
bool wants_packing(const conda::PackedPath& packed) {
  return !packed.exists && packed.survey.files > 0;
}

/// Says what is done first, and asks. False: it is only looked at. Error `interrupted`: no.
Result<bool> agree_to_pack(Context& context, const std::string& path, const tree::Survey& survey) {
  const bool looks = context.flags.only_looks();
  const auto* be = looks ? "would be" : survey.files == 1 ? "is" : "are";
  const auto* what =
      conda::is_few_large(survey) ? "read once first, for checksums" : "packed into one file on the share first";
  context.console.message(
      fmt::format("{}: {} ({}) {} {}", path, count_of(survey.files, "file"), format_bytes(survey.bytes), be, what));
  if (looks)
    return false;
  const auto agreed = ask_consent(context);
  if (!agreed || *agreed)
    return agreed;
  return fail(ErrorCode::interrupted, "nothing was changed");
}

/// Looks at the directory, and makes its image on the share where this host could mount it. For one node alone a list
/// of few large files is of no use.
Result<conda::PackedPath> packed_path(Context& context, const conda::PathStagingRequest& request) {
  auto packed = conda::survey_path(context.system, request, say_to(context));
  if (!packed || !wants_packing(*packed) || conda::is_few_large(packed->survey) ||
      !conda::why_no_images(context.system).empty())
    return packed;
  const auto agreed = agree_to_pack(context, request.path, packed->survey);
  if (!agreed)
    return fail(agreed.error());
  if (!*agreed)
    return packed;
  if (auto made = pack_as_whoever_may(context, request, *packed, false); !made) {
    if (made.error().code == ErrorCode::interrupted)
      return fail(made.error());
    context.console.warning("it gets no image: " + made.error().message);
  }
  return packed;
}

/// For a user: root's copy of what the directory holds now, which is for all who may read that. Empty: none.
std::string copy_of_root(Context& context, const conda::PathStagingRequest& request, const tree::Survey& survey) {
  if (context.system.identity().uid == 0)
    return {};
  for (const auto& copy : conda::list_staged_paths(context.system, {staged_for_all(**context.config())}))
    if (copy.copy.mark.uid == 0 && copy.path == request.path && copy.survey() == survey && copy.is_whole())
      return copy.copy.tree.path;
  return {};
}

Result<int> stage_path(Context& context, const Arguments& arguments, const std::string& word) {
  const auto request = path_request(context, arguments, word);
  if (!request)
    return fail(request.error());
  const auto say = say_to(context);
  sys::install_interrupt_handlers(); // what is being made is removed
  if (arguments.flag("pack")) {
    const auto packed = conda::survey_path(context.system, *request, say);
    if (!packed)
      return fail(packed.error());
    context.envelope.fields["packed"] = conda::text_of(packed->survey);
    if (!wants_packing(*packed))
      return k_exit_ok;
    return context.flags.only_looks() ? Result<int>(k_exit_pending)
                                      : pack_as_whoever_may(context, *request, *packed, true);
  }
  auto packed = Result<conda::PackedPath>(conda::PackedPath{});
  if (const auto told = arguments.value("packed")) {
    auto survey = survey_for_all(*told);
    if (!survey)
      return fail(survey.error());
    packed->image = conda::packed_image(*request, *survey);
    packed->survey = std::move(*survey);
  } else {
    packed = packed_path(context, *request);
  }
  if (!packed)
    return fail(packed.error());
  conda::PathStaging staging;
  std::optional<plan::HostLock> alone; // until the steps are done
  const auto propose = [&]() -> Result<Proposal> {
    if (auto there = copy_of_root(context, *request, packed->survey); !there.empty())
      return Proposal{{}, there + " is there"};
    auto planned = conda::plan_path_staging(context.system, *request, *packed);
    if (!planned)
      return fail(planned.error());
    staging = std::move(*planned);
    Proposal proposal{staging.plan, staging.nothing};
    if (staging.why_files.empty() && context.system.identity().uid == 0)
      plan_staged_unit(context, true, proposal.plan);
    proposal.takes_long = staging.copies;
    proposal.before_groups = [&]() -> Result<void> {
      if (request->is_own)
        if (auto made = cachefix::make_own_directory(context.system, parent_path(request->at)); !made)
          return made;
      auto copied = conda::copy_path(context.system, *request, staging, say);
      if (!copied)
        return fail(copied.error());
      if (*copied)
        alone.emplace(std::move(**copied));
      return {};
    };
    return proposal;
  };
  return execute(context, propose).map(&Executed::exit_code);
}

Result<std::vector<conda::StagedPath>> staged_here(Context& context) {
  const auto config = context.config();
  if (!config)
    return fail(config.error());
  return conda::list_staged_paths(context.system, staged_paths_directories(context));
}

Result<int> list_staged(Context& context) {
  const auto staged = staged_here(context);
  if (!staged)
    return fail(staged.error());
  ui::Table table({{"PATH"}, {"HASH"}, {"SIZE", true}, {"STATE"}});
  auto json = nlohmann::ordered_json::array();
  for (const auto& one : *staged) {
    const auto& [tree, image] = std::tie(one.copy.tree, one.copy.image);
    const bool by_image = image.kind == sys::EntryKind::file;
    table.add({{one.path}, {base_name(tree.path)}, {by_image ? format_bytes(image.size) : "-"}, {one.state()}});
    json.push_back({{"path", to_utf8(one.path)},
                    {"copy", to_utf8(tree.path)},
                    {"bytes", by_image ? nlohmann::ordered_json(image.size) : nlohmann::ordered_json()},
                    {"state", one.state()}});
  }
  context.envelope.fields["staged"] = std::move(json);
  if (staged->empty())
    context.console.message("no directory is staged here; `sharefs conda list` and `status` know of environments");
  else
    context.console.show(table);
  return k_exit_ok;
}

Result<int> drop_staged(Context& context, const std::string& word) {
  const auto path = normalize_path(word, context.host.working_directory);
  const auto led_to = see_on_share(context, {.path = path, .follow = true}).entries.front().resolved;
  std::optional<plan::HostLock> alone; // what has no mark yet may be coming
  if (!context.flags.only_looks()) {
    auto lock = lock_staging(context);
    if (!lock)
      return fail(lock.error());
    alone.emplace(std::move(*lock));
  }
  const auto propose = [&]() -> Result<Proposal> {
    auto staged = staged_here(context);
    if (!staged)
      return fail(staged.error());
    std::erase_if(*staged, [&](const conda::StagedPath& one) {
      return !one.is_of(path) && !one.is_of(led_to) && base_name(one.copy.tree.path) != word;
    });
    return Proposal{conda::plan_drop(*staged), "nothing of it is staged here"};
  };
  return execute(context, propose).map(&Executed::exit_code);
}

Result<int> run_stage_command(Context& context, const Arguments& arguments) {
  if (context.flags.root != "/")
    return fail(ErrorCode::unsupported, "what is staged is staged on a running system: --root is not possible here");
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

/// Asks the nodes, one after the other until one can say it, what the directory holds, or to make the image of that.
Result<fleet::Outcome> ask_one_of(Context& context, const fleet::Request& job, const std::string& path, bool packs) {
  constexpr int k_most_failures = 3; // what so many cannot do is no fault of one node
  auto nodes = job.nodes;
  std::ranges::stable_partition(nodes,
                                [](const auto& node) { return !node.in(fleet::k_servers); }); // need not mount it
  std::optional<fleet::Outcome> worst;
  for (int failures = 0; const auto& node : nodes) {
    const auto outcomes = ask_nodes(context, {node}, {"stage", path, "--pack", packs ? "--yes" : "--check"}, true,
                                    std::chrono::hours(packs ? 24 : 1));
    if (!outcomes)
      return fail(outcomes.error());
    const auto& outcome = outcomes->front();
    if (is_good(outcome.state) || outcome.state == fleet::State::pending)
      return outcome;
    const bool was_reached = outcome.state == fleet::State::failed || outcome.state == fleet::State::timed_out;
    if (!worst || (was_reached && failures == 0))
      worst = outcome;
    if (was_reached && ++failures == k_most_failures)
      break;
  }
  return fail(ErrorCode::failed, fmt::format("{}: {}", worst->node, worst->why), worst->hint);
}

/// One node packs, and all others are told what it has found.
Result<void> before_nodes(Context& context, const Arguments& arguments, fleet::Request& job) {
  if (arguments.flag("list") || arguments.flag("drop") || arguments.positional.size() != 1 || job.nodes.empty())
    return {};
  const auto& word = arguments.positional.front();
  if (is_path(word)) {
    const auto path = normalize_path(word, context.host.working_directory);
    const auto looked = ask_one_of(context, job, path, false);
    if (!looked)
      return fail(looked.error());
    const auto packed = looked->document.value("packed", "");
    const auto survey = survey_for_all(packed);
    if (!survey)
      return fail(survey.error());
    if (looked->state == fleet::State::pending) {
      const auto agreed = agree_to_pack(context, path, *survey);
      if (!agreed)
        return fail(agreed.error());
      const auto made = *agreed ? ask_one_of(context, job, path, true) : looked;
      if (!made && made.error().code == ErrorCode::interrupted)
        return fail(made.error());
      if (!made)
        context.console.warning("it gets no image: " + made.error().message, made.error().hint);
    }
    job.asking.words.insert(job.asking.words.end(), {"--packed", packed});
  }
  tell_places(job);
  return {};
}

} // namespace

std::set<std::string> staged_paths_directories(Context& context) {
  std::set<std::string> directories{staged_for_all(**context.config())};
  if (!has_own_place(context))
    return directories;
  if (const auto choices = choices_of(context))
    for (const auto& own : cachefix::own_directories(context.system, choices->local, context.system.identity()))
      directories.insert(copies_below(own));
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
        "nothing reads it but by its own path (--list). With --on NODES the nodes hand it on from one to two others "
        "while it comes, so that the server sends it once; where ssh does not lead from one node to another, it comes "
        "from the share, and the answer says so. ENV is an environment of the store, as of `conda stage`.",
    .example = "sharefs stage /data/share/datasets/c4\n"
               "sharefs --on all stage llm_train\n"
               "sharefs stage --list\n"
               "sharefs stage --drop /data/share/datasets/c4",
    .effect = Effect::changes,
    .positional = {.name = "PATH|ENV",
                   .help = "a directory of the share, or an environment of the store",
                   .min = 0,
                   .max = 1},
    .options = {k_limit_option,
                {.names = "--list", .help = "what is staged here"},
                {.names = "--drop", .help = "take the copies of it away, or the one with this HASH of --list"},
                {.names = "--pack", .help = "only make the image on the share"},
                {.names = "--packed", .value = "TEXT", .help = "what `--on NODES` has found out about the directory"},
                k_among_option,
                k_place_option},
    .on_nodes = true,
    .before_nodes = before_nodes,
    .run = run_stage_command,
};

} // namespace sharefs::cli
