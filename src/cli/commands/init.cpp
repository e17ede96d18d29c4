#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/init_text.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "sys/process/process.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr std::chrono::seconds k_file_deadline{5};
constexpr std::uint32_t k_file_mode = 0644, k_directory_mode = 0755;

enum class There { nothing, directory, something };

/// The path may lie on a dead mount: looked at in a child.
Result<There> look(const sys::Files& files, const std::string& path) {
  const auto kind = sys::in_child(std::nullopt, k_file_deadline, [&]() -> Result<std::string> {
    const auto info = files.info(path);
    if (!info)
      return fail(info.error());
    if (!*info)
      return "nothing";
    return (*info)->kind == sys::FileInfo::Kind::directory ? "directory" : "something";
  });
  if (!kind && kind.error().code == ErrorCode::not_found)
    return There::nothing;
  if (!kind)
    return fail(kind.error());
  return *kind == "nothing" ? There::nothing : *kind == "directory" ? There::directory : There::something;
}

Result<void> check_new(const sys::Files& files, const std::string& path) {
  const auto there = look(files, path);
  if (!there)
    return fail(there.error());
  if (*there != There::nothing)
    return fail(ErrorCode::conflict, path + " is there already and is never overwritten",
                "edit it and run `sharefs config check`, or write another one with --output FILE");
  return {};
}

/// Makes the file, and the directory that it lies in if only that one is missing.
Result<plan::Plan> plan_file(const sys::Files& files, const std::string& path, std::string text) {
  plan::Plan plan;
  const auto directory = parent_path(path);
  const auto parent = directory == "/" ? Result<There>(There::directory) : look(files, directory);
  if (!parent)
    return fail(parent.error());
  if (*parent == There::nothing) {
    const auto above = parent_path(directory);
    if (const auto there = above == "/" ? Result<There>(There::directory) : look(files, above);
        !there || *there == There::nothing)
      return fail(ErrorCode::not_found, "there is no directory " + directory, "make it, or choose another --output");
    plan.add("init", "for the configuration", plan::MakeDirectory{directory, k_directory_mode, std::nullopt});
  }
  plan.add("init", "what was found on this host", plan::WriteFile{path, std::nullopt, std::move(text), k_file_mode});
  return plan;
}

/// The usual place is root's; elsewhere the file system decides.
Result<void> check_permission(Context& context, const std::string& path) {
  const bool changes = !context.flags.dry_run && !context.flags.check;
  if (changes && is_under(path, "/etc") && context.system.identity().uid != 0)
    return fail(ErrorCode::permission, "only root may write " + path, "run as root, or give --output FILE");
  return {};
}

std::string output_path(const Context& context, const Arguments& arguments) {
  const auto given = arguments.value("output").value_or("");
  return given.empty() ? context.config_path() : normalize_path(given, context.host.working_directory);
}

std::string found_text(const InitFacts& facts) {
  std::size_t exports = 0;
  for (const auto& file : facts.exports)
    exports += file.exports.size();
  return fmt::format("found {}, {} and {}", count_of(exports, "export"), count_of(facts.mounts.size(), "NFS mount"),
                     count_of(facts.conda.found.size(), "conda installation"));
}

Result<int> run_init(Context& context, const Arguments& arguments) {
  const auto path = output_path(context, arguments);
  if (auto fresh = check_new(context.system.files(), path); !fresh)
    return fail(fresh.error());
  if (auto allowed = check_permission(context, path); !allowed)
    return fail(allowed.error());
  const auto facts = find_init_facts(context.system, context.flags.root == "/");
  if (!facts)
    return fail(facts.error());
  const auto plan = plan_file(context.system.files(), path, init_text(*facts));
  if (!plan)
    return fail(plan.error());
  context.report(facts->conda.problems);
  context.envelope.fields["file"] = to_utf8(path);
  context.console.message(found_text(*facts));
  const auto executed = execute(context, *plan, "");
  if (!executed)
    return fail(executed.error());
  if (executed->applied() && executed->exit_code == k_exit_ok)
    context.console.message(fmt::format("next: edit {}, then run `sharefs {}config check`", path,
                                        path == context.config_path() ? "" : "--config " + shell_quote(path) + " "));
  return executed->exit_code;
}

} // namespace

extern const CommandSpec k_init_command;
const CommandSpec k_init_command{
    .name = "init",
    .summary = "Write a sharefs.yaml with what is found on this host",
    .description = "Looks for exports (/etc/exports and /etc/exports.d), NFS mounts, and conda installations in the "
                   "homes of root and "
                   "of the users with ids from 1000, and writes a commented sharefs.yaml with them. What was not found "
                   "stands there "
                   "as an example in comments. A file that exists is never overwritten.",
    .example = "sudo sharefs init                   # writes /etc/sharefs/sharefs.yaml\n"
               "sharefs init --output sharefs.yaml --yes",
    .effect = Effect::changes,
    .options = {{.names = "--output", .value = "FILE", .help = "write this file instead of the one that is read"}},
    .run = run_init,
};

} // namespace sharefs::cli
