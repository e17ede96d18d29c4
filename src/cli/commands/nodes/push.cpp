// sharefs nodes push: brings this program and sharefs.yaml to other machines, also to those that have no sharefs.
#include "fleet/push.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cachefix/guard.hpp"
#include "cli/on_nodes.hpp"
#include "fleet/reach.hpp"
#include "fleet/scratch.hpp"
#include "fleet/script.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sharefs::cli {

namespace {

/// The content that this machine sends, and its sources.
struct Load {
  fleet::PushContent content;
  std::string program; ///< path of the program or the package
  std::string guard;   ///< directory of the guard; empty: none
  std::string config;  ///< text of sharefs.yaml
};

Result<Load> load_of(Context& context, const Arguments& arguments) {
  Load load;
  load.content.prefix = arguments.value("prefix").value_or(load.content.prefix);
  if (!load.content.prefix.starts_with('/'))
    return fail(ErrorCode::usage, "option `--prefix` needs an absolute path", "--prefix /usr/local");
  TRY_ASSIGN(load.config, context.system.files().read(context.config_path()));
  if (const auto package = arguments.value("package")) {
    load.program = normalize_path(*package, context.host.working_directory);
    TRY_ASSIGN(const auto version, fleet::output_of(context.system, {"dpkg-deb", "-f", load.program, "Version"}));
    load.content.package = trim(version);
  } else {
    load.program = context.system.entry({.path = "/proc/self/exe"}).link_target;
    if (!context.system.entry({.path = load.program}).exists())
      return fail(ErrorCode::failed, fmt::format("{}: this program was replaced while it runs", load.program),
                  "run the command again");
    if (const auto guard = cachefix::find_guard(context.system, load.program); guard)
      load.guard = parent_path(*guard);
    else
      context.console.warning("nodes get no guard: " + guard.error().message, guard.error().hint);
    TRY_ASSIGN(const auto version, fleet::output_of(context.system, {load.program, "--version"}));
    load.content.version = trim(version);
  }
  const auto script = fleet::installed_script("", load.program, load.guard, context.config_path());
  TRY_ASSIGN(const auto said, fleet::output_of(context.system, {"sh", "-c", script, "sh"}));
  const auto here = fleet::parse_installed(said);
  if (!here)
    return fail(ErrorCode::failed, "what is installed on this machine cannot be read");
  load.content.here = *here;
  return load;
}

/// Makes the archive for the nodes; returns its path. After a change of sharefs.yaml nobody waits for the program.
Result<std::string> pack(Context& context, const Load& load, bool with_program, const fleet::Scratch& scratch) {
  auto file = join_path(scratch.path(), "archive.tar");
  TRY(scratch.write("sharefs.yaml", load.config));
  Argv tar{"tar", "-c", "-h", "-f", file, "--owner=0", "--group=0", "--exclude=__pycache__", "--exclude=*.pyc"};
  tar.insert(tar.end(), {"-C", scratch.path(), "sharefs.yaml"});
  const auto add = [&](const std::string& target, const char* name) -> Result<std::string> {
    tar.emplace_back(name);
    return fleet::output_of(context.system, {"ln", "-s", "--", target, join_path(scratch.path(), name)});
  };
  if (with_program)
    TRY(add(load.program, load.content.package.empty() ? "sharefs" : "sharefs.deb"));
  if (with_program && !load.guard.empty())
    TRY(add(load.guard, "share"));
  TRY(fleet::output_of(context.system, tar));
  return file;
}

fleet::Request ask_request(const Load& load) {
  fleet::Request request;
  request.asking.script = fleet::installed_script(load.content.prefix);
  request.asking.as_root = true; // the change needs root, so it is already needed here
  request.read = [content = load.content](const fleet::Node& node, const std::string& out, const fleet::Ended& ended) {
    const auto there = fleet::parse_installed(out);
    return there ? fleet::plan_push(node, content, *there) : fleet::outcome_of(node, {}, ended);
  };
  return request;
}

Result<int> run_nodes_push(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(auto nodes, other_nodes(context, named_nodes(arguments)));
  TRY_ASSIGN(const auto most, most_failures_of(arguments));
  TRY_ASSIGN(const auto load, load_of(context, arguments));
  if (nodes.empty()) {
    context.console.message("this machine is the only one of these nodes: nothing is to be pushed");
    return k_exit_ok;
  }
  std::optional<plan::HostLock> lock;
  if (!context.flags.changes_nothing()) {
    TRY_ASSIGN(auto taken, lock_fleet(context));
    lock.emplace(std::move(taken));
  }
  TRY_ASSIGN(auto answers, run_script(context, arguments, nodes, ask_request(load), false, "asking nodes"));
  if (answers.interrupted)
    return fail(ErrorCode::interrupted, "interrupted: nothing was changed");
  if (const auto ended = agree_on_plans(context, nodes, answers.outcomes, most))
    return *ended;

  TRY_ASSIGN(const auto deadline, node_deadline(arguments));
  TRY_ASSIGN(const auto lease, LeaseOnServers::take(context, "push-" + random_letters(8), deadline));
  TRY_ASSIGN(const auto directory, fleet_directory(context));
  TRY_ASSIGN(const auto scratch, fleet::Scratch::make(context.system.files(), directory));
  fleet::Request request;
  const bool with_program = std::ranges::any_of(answers.outcomes, fleet::sends_program);
  TRY_ASSIGN(request.asking.input, pack(context, load, with_program, scratch));
  request.asking.script = fleet::install_script(load.content);
  request.asking.as_root = true;
  request.read = fleet::script_outcome;
  TRY_ASSIGN(auto done, run_script(context, arguments, nodes, request, true, "pushing to nodes"));
  fleet::replace(answers.outcomes, std::move(done.outcomes));
  show_outcomes(context, answers.outcomes);
  const int code = fleet::exit_code_of(answers.outcomes);
  if (code != k_exit_ok)
    context.console.message("run the same command again for those that are not done");
  return done.interrupted ? k_exit_interrupted : code;
}

} // namespace

extern const CommandSpec k_nodes_push_command{
    .name = "nodes push",
    .summary = "Bring this sharefs and sharefs.yaml to other machines",
    .description =
        "Each node gets this very program, the guard of `sharefs run`, and this machine's sharefs.yaml, also "
        "where there is no sharefs yet: it needs ssh, and root or `sudo -n` there. What is sent is tried "
        "before it takes its place, in one moment, and the old one is kept as NAME.old; a node where "
        "something fails keeps what it had. Servers come first, then one node, then the rest. Where all is "
        "equal, nothing is done.",
    .example = "sharefs nodes push --check        # which nodes have another program or file?\n"
               "sharefs nodes push\n"
               "sharefs nodes push --package sharefs_0.1.0_amd64.deb 'gpu[01-64]'",
    .changes = true,
    .positional = {.name = "NODES", .help = "names, ranges and groups (@a100, clients); without them all", .max = 1},
    .options = with_fleet_options(
        {{.names = "--package", .value = "FILE", .help = "install this Debian package instead of the program"},
         {.names = "--prefix",
          .value = "DIR",
          .help = "where nodes get it that have no sharefs yet",
          .fallback = "/usr/local"}}),
    .run = run_nodes_push,
};

} // namespace sharefs::cli
