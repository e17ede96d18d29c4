// sharefs run -- CMD: changes the command line so that the dataset cache race cannot happen, then executes it.
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cachefix/run_plan.hpp"
#include "cachefix/store/cache_store.hpp"
#include "cli/commands/cachefix_choices.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/commands/up/part.hpp"
#include "conda/running.hpp"
#include "mounts/boot.hpp"
#include "mounts/launch_guard.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <ostream>
#include <utility>

namespace sharefs::cli {
namespace {

constexpr std::chrono::minutes k_seed_deadline{5}; // without progress
constexpr std::chrono::milliseconds k_mount_deadline{2'000};
constexpr std::chrono::milliseconds k_size_deadline{200}; // to measure a cache that is not copied

/// Reads `--keep` and `--local`. A word without dashes is the name of a variable, so lower-case letters are a mistake.
Result<std::vector<cachefix::UserRule>> read_rules(const Arguments& arguments) {
  std::vector<cachefix::UserRule> rules;
  for (const std::string option : {"--keep", "--local"})
    for (const std::string& flag : arguments.list(option.substr(2))) {
      const bool variable = flag.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
      if (!flag.starts_with("-") && !variable)
        return fail(ErrorCode::usage, "`" + option + " " + flag + "` names neither a flag nor a variable",
                    "did you mean `" + option + " --" + flag + "`?");
      rules.push_back({"", flag, option == "--local", option});
    }
  return rules;
}

/// Returns the environment of the command: ours, in its order, then the variables that were set.
std::vector<std::string> environment_of(const std::vector<std::string>& ours, const cachefix::RunPlan& decision) {
  std::vector<std::string> result;
  for (const std::string& entry : ours)
    if (!decision.set.contains(entry.substr(0, entry.find('='))))
      result.push_back(entry);
  for (const auto& [name, value] : decision.set)
    result.push_back(name + "=" + value);
  return result;
}

/// Returns the exact command for copy and paste: `env NAME=value CMD...` if the environment changes.
Argv shown_command(const cachefix::RunPlan& decision) {
  Argv words;
  if (!decision.set.empty())
    words.emplace_back("env");
  for (const auto& [name, value] : decision.set)
    words.push_back(name + "=" + value);
  words.insert(words.end(), decision.argv.begin(), decision.argv.end());
  return words;
}

/// Reports the diagnoses. The first that stops the command (an error, or under --strict a warning) is returned as the
/// command's error, and not reported as well.
Result<void> report_diagnoses(Context& context, Diagnoses diagnoses, bool strict) {
  const auto stops = [strict](const Diagnosis& diagnosis) {
    return diagnosis.severity == Severity::error || (strict && diagnosis.severity == Severity::warning);
  };
  const auto stop = std::find_if(diagnoses.begin(), diagnoses.end(), stops);
  if (stop == diagnoses.end()) {
    context.report(diagnoses);
    return {};
  }
  Error error{ErrorCode::failed, fmt::format("{}: {} [{}]", stop->subject, stop->message, stop->code), stop->hint, ""};
  if (!context.flags.json)
    diagnoses.erase(stop);
  context.report(diagnoses);
  return fail(std::move(error));
}

/// True if the command is started on other machines, whose mounts may differ from those here. srun within a job does
/// not count, because this machine is a node of that job: slurmd sets SLURMD_NODENAME for all that it starts.
bool starts_elsewhere(const Context& context, const cachefix::RunPlan& decision) {
  const bool in_job = context.environment("SLURMD_NODENAME").has_value();
  const auto is_remote = [&](const std::string& name) {
    return cachefix::is_listed(name, cachefix::words_of("remote")) && !(in_job && name == "srun");
  };
  return is_remote(base_name(decision.argv.front())) ||
         std::ranges::any_of(decision.chain, [&](const auto& link) { return is_remote(link.name); });
}

/// Checks that the paths of the command, after its caches were moved, do not lie where a mount is missing, stale or
/// hung (mounts::guard_launch).
Result<void> check_mounts(Context& context, const cachefix::RunPlan& decision, bool dry_run) {
  std::vector<mounts::Expected> expected;
  const auto loaded = context.config_if_any();
  const config::Config* const config = loaded ? *loaded : nullptr;
  for (const auto& mount : config == nullptr ? std::vector<config::Mount>() : config->mounts)
    expected.push_back({normalize_path(mount.at), mount.name, mount.origin.text()});
  // A line of rc.local that sharefs did not write may stand in an `if`: it is no promise.
  for (const auto& one : mounts::read_boot_facts(context.system).entries)
    if (one.ours || one.way != mounts::BootWay::rc_local)
      expected.push_back({one.target, "", one.origin});
  const mounts::Launch launch{decision.argv, environment_of(context.host.environment, decision),
                              context.host.working_directory};
  auto found = mounts::check_launch_mounts(context.system, expected, launch, k_mount_deadline);
  if (!found.empty()) { // who we are takes long to find out, and matters on a server only
    const auto here = config == nullptr ? std::vector<mounts::MountPoint>() : mounts_for_host(context.system, *config);
    std::erase_if(expected, [&](const mounts::Expected& one) {
      const auto point = std::ranges::find(here, one.target, &mounts::MountPoint::target);
      return point == here.end() ? !one.name.empty() : point->is_in_place();
    });
    found = mounts::check_launch_mounts(context.system, expected, launch, k_mount_deadline);
  }
  const bool elsewhere = starts_elsewhere(context, decision);
  for (auto& one : found) {
    if (dry_run || elsewhere)
      one.severity = Severity::warning;
    if (elsewhere)
      one.hint = "the command is started on other machines, which were not looked at: run `sharefs status` there";
  }
  return report_diagnoses(context, std::move(found), false);
}

/// Fills the node-local directories from their shared ones. A failure is only a warning: the program builds the cache.
void seed_caches(Context& context, const cachefix::RunPlan& decision, const cachefix::LocalChoice& local) {
  for (const auto& [directory, shared] : decision.directories) {
    const std::string resolved = context.system.entry({.path = shared, .follow = true}).resolved;
    Result<tree::CopyReport> seeded;
    {
      const ui::Progress progress(context.console, "copying " + to_utf8(shared));
      seeded = cachefix::seed_cache(resolved, directory, local.min_free_bytes, k_seed_deadline);
    }
    if (!seeded)
      context.console.warning(to_utf8(shared) + ": nothing was copied: " + seeded.error().message);
    else if (seeded->files > 0)
      context.console.message("sharefs: copied " + count_of(seeded->files, "file") + " (" +
                              format_bytes(seeded->bytes) + ") from " + to_utf8(shared));
  }
}

/// Reports the caches that the program makes again because they are new on this node: compiling kernels takes minutes.
void report_cold_caches(Context& context, const cachefix::RunPlan& decision) {
  for (const auto& [directory, shared] : decision.directories) {
    if (context.system.entry({.path = directory}).kind != sys::EntryKind::missing)
      continue;
    const auto there = context.system.entry({.path = shared, .follow = true, .list = true});
    if (there.names.empty())
      continue;
    const auto size = cachefix::size_of_cache(there.resolved, k_size_deadline);
    context.console.message("sharefs: " + to_utf8(shared) + " holds " + (size ? format_bytes(*size) : "much") +
                            ", which is made again on this node; --seed copies it");
  }
}

/// True if this process is the first rank of its job, which reports for all, or in no job.
bool is_first_rank(const Context& context) {
  return !cachefix::any_word(cachefix::words_of("ranks"), ' ', [&](std::string_view name) {
    return context.environment(name).value_or("").find_first_of("123456789") != std::string::npos;
  });
}

/// Returns the environment, directory and stdin that the command starts with.
cachefix::Start make_start(Context& context) {
  cachefix::Start start{{}, context.host.working_directory, {}};
  for (const std::string& entry : context.host.environment)
    if (const auto equals = entry.find('='); equals != std::string::npos)
      start.environment.emplace(entry.substr(0, equals), entry.substr(equals + 1)); // getenv(3) takes the first
  if (const auto input = context.system.entry({.path = "/proc/self/fd/0"}).link_target; input.starts_with('/'))
    start.input = input;
  if (!context.environment("HOME").value_or("").starts_with('/'))
    start.home = context.system.identity().home;
  return start;
}

/// Returns words in front of a command that start sharefs on the command's node. Without sharefs there, the command
/// starts all the same. Returns none if no node has this program, because it lies neither in a directory of packages
/// nor on shared storage.
Argv make_node_words(Context& context, const Arguments& arguments, cachefix::Facts& facts) {
  const std::string program = context.system.entry({.path = "/proc/self/exe"}).link_target;
  const bool installed = std::ranges::any_of(std::array{"/usr/", "/opt/", "/bin/"},
                                             [&](std::string_view above) { return program.starts_with(above); });
  if (program.empty() || (!installed && !facts.is_shared(program)))
    return {};
  Argv words{program, "run", "--node"};
  for (const std::string flag : {"seed", "strict", "explain", "no-guard"})
    if (arguments.flag(flag))
      words.push_back("--" + flag);
  for (const std::string option : {"keep", "local"})
    for (const std::string& value : arguments.list(option))
      words.insert(words.end(), {"--" + option, value});
  words = with_config(context, std::move(words));
  if (context.flags.verbose)
    words.emplace_back("--verbose");
  words.emplace_back("--");
  const std::string there = shell_quote(program);
  return {"/bin/bash", "-pc",
          "command -v " + there + " >/dev/null && exec " + shell_join(words) + " \"$@\"; exec \"$@\"", "sharefs"};
}

/// Decides about the command.
Result<cachefix::RunPlan> decide(Context& context, const Arguments& arguments, const CacheChoices& choices) {
  cachefix::Facts facts(context.system, [&] {
    return cachefix::find_local_root(context.system, choices.local, context.system.identity());
  });
  cachefix::Rules rules = choices.rules;
  if (facts.any_shared()) { // without shared storage there is no race
    if (auto guard = guard_of(context, choices))
      rules.guard = *std::move(guard);
    else if (context.flags.verbose)
      context.console.message("sharefs: programs are not guarded: " + guard.error().message);
  }
  if (!arguments.flag("node"))
    rules.node = make_node_words(context, arguments, facts);
  auto decision = cachefix::plan_run(*arguments.rest, make_start(context), facts, rules);
  if (facts.error())
    return fail(*facts.error());
  return decision;
}

/// Shows the changes in one line, or (`all`) each with its reason; --explain adds what was left.
void show_changes(Context& context, const Arguments& arguments, const cachefix::RunPlan& decision, bool all) {
  if (context.flags.json) {
    context.envelope.fields = cachefix::document(*arguments.rest, decision);
  } else if (all) {
    for (const std::string& line : cachefix::describe(decision, arguments.flag("explain")))
      context.console.message("sharefs: " + line);
  } else if (const auto line = cachefix::summary(decision); !line.empty()) {
    context.console.message("sharefs: " + line + "; -v says how");
  }
}

Result<int> run_command(Context& context, const Arguments& arguments) {
  const bool dry_run = arguments.flag("dry-run"), seed = arguments.flag("seed");
  const bool all = dry_run || context.flags.verbose || context.flags.json || arguments.flag("explain");
  if (!context.flags.verbose && !is_first_rank(context))
    context.console.set_errors_only();
  TRY_ASSIGN(auto given, read_rules(arguments));
  TRY_ASSIGN(const auto choices, choices_of(context, std::move(given)));
  TRY_ASSIGN(const auto decision, decide(context, arguments, choices));
  Diagnoses reports = decision.diagnoses;
  if (!all)
    std::erase_if(reports, [](const Diagnosis& one) { return one.severity == Severity::info; });
  auto reported = report_diagnoses(context, std::move(reports), arguments.flag("strict"));
  if (reported && !arguments.flag("no-guard"))
    reported = check_mounts(context, decision, dry_run);
  if (reported && !dry_run) {
    if (!seed)
      report_cold_caches(context, decision);
    TRY(cachefix::prepare(context.system, decision));
  }
  show_changes(context, arguments, decision, all);
  TRY(reported);
  if (dry_run) {
    context.console.print(shell_join(shown_command(decision)) + "\n");
    return k_exit_ok;
  }
  if (seed)
    seed_caches(context, decision, choices.local);
  // stdout belongs to the command, so the JSON document goes to stderr.
  if (context.flags.json)
    context.host.err << context.envelope.text();
  const auto environment = environment_of(context.host.environment, decision);
  return exec_command(context,
                      conda::pin_command(context.system, decision.argv, environment, context.host.working_directory),
                      environment);
}

} // namespace

Result<cachefix::Guard> guard_of(Context& context, const CacheChoices& choices) {
  if (choices.caches.guard == "off")
    return fail(ErrorCode::not_found, "caches.guard is off");
  if (context.environment("SHAREFS_GUARD") == "0")
    return fail(ErrorCode::not_found, "SHAREFS_GUARD is 0");
  TRY_ASSIGN(auto directory,
             cachefix::find_guard(context.system, context.system.entry({.path = "/proc/self/exe"}).link_target));
  return cachefix::Guard{std::move(directory), choices.caches.build, cachefix::kept_variables(choices.rules.user),
                         context.flags.config.empty() ? "" : context.config_path()};
}

Result<CacheChoices> choices_of(Context& context, std::vector<cachefix::UserRule> first) {
  TRY_ASSIGN(const auto* const config, context.config_if_any());
  CacheChoices choices{config == nullptr ? config::Caches{} : config->caches, {std::move(first)}, {}};
  const config::Caches& caches = choices.caches;
  for (const config::CacheRule& rule : caches.rules)
    choices.rules.user.push_back({rule.program, rule.flag, rule.place == "local", rule.origin.text()});
  choices.rules.only_racy = caches.when == "racy";
  choices.local = {caches.local, parse_size(caches.min_free).value_or(0), context.host.environment};
  return choices;
}

extern const CommandSpec k_run_command{
    .name = "run",
    .summary = "Run a training command without the dataset cache race",
    .description =
        "Guards the Python programs that the command starts, behind whatever launchers: what they cache on shared "
        "storage is built on this node's own disk and copied to the share complete (`caches.build`); models and "
        "outputs "
        "stay where they are. Caches of kernels and modules move to the node's own disk by variables. Then it becomes "
        "the command. In a job of many ranks the first one says in a line what is done; -v gives each change with its "
        "reason. SHAREFS_CACHEFIX=0 in the environment switches all of it off, SHAREFS_GUARD=0 the guard.",
    .example =
        "sharefs run -- torchrun --nproc_per_node=8 train.py --cache_dir /data/share/cache --output_dir "
        "/data/share/out\n"
        "sharefs run --dry-run --explain -- deepspeed --hostfile hostfile src/train.py --cache_dir /data/share/cache\n"
        "sharefs run --keep --cache_dir -- python train.py --cache_dir /data/share/cache   # leave this flag",
    .options = {{.names = "--dry-run", .help = "show the changes and the exact command, run nothing"},
                {.names = "--explain", .help = "say of every cache that was left why"},
                {.names = "--strict", .help = "fail (125) where a warning says that something was not understood"},
                {.names = "--seed", .help = "first copy what the shared caches hold to this node, verified"},
                {.names = "--no-guard",
                 .help = "start it also where a mount that its paths lie on is missing, stale or hung"},
                {.names = "--node",
                 .help = "this is a node of a job that was started with `sharefs run`: the first rank speaks"},
                {.names = "--keep", .value = "FLAG", .help = "never change this flag or variable", .repeat = true},
                {.names = "--local",
                 .value = "FLAG",
                 .help = "put this flag's or variable's path on the node's own disk",
                 .repeat = true}},
    .takes_command = true,
    .run = run_command,
};

} // namespace sharefs::cli
