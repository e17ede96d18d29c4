#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/init/facts.hpp"
#include "cli/execute.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr std::uint32_t k_file_mode = 0644, k_directory_mode = 0755;
constexpr std::string_view k_standard_output = "-";

/// Plans the file, and its directory if only that is missing.
Result<plan::Plan> plan_file(const sys::Entry& there, std::string text) {
  plan::Plan plan;
  const auto directory = parent_path(there.resolved);
  if (directory != there.ancestor) {
    if (parent_path(directory) != there.ancestor)
      return fail(ErrorCode::not_found, "there is no directory " + directory, "make it, or choose another --output");
    plan.add("init", "for the configuration", plan::make_directory(directory, k_directory_mode));
  }
  plan.add("init", "what was found on this host", plan::File{there.path, std::nullopt, std::move(text), k_file_mode});
  return plan;
}

/// Returns the command that checks the file, ready to be typed.
std::string check_command(const Context& context, const std::string& path) {
  return fmt::format("`sharefs {}config check{}`",
                     context.flags.root == "/" ? "" : "--root " + shell_quote(context.flags.root) + " ",
                     path == context.config_path() ? "" : " " + shell_quote(path));
}

/// Checks that nothing exists at the path: no file is overwritten, and no link is followed. Returns the entry.
Result<sys::Entry> check_new(Context& context, const std::string& path) {
  auto there = context.system.files().entry({.path = path});
  if (there.exists())
    return fail(ErrorCode::conflict, path + " is there already and is never overwritten",
                "edit it and run " + check_command(context, path) + ", or write another one with --output FILE");
  if (there.kind == sys::EntryKind::unknown)
    return fail(there.error());
  return there;
}

Result<int> run_init(Context& context, const Arguments& arguments) {
  const auto given = arguments.value("output").value_or("");
  const bool print = given == k_standard_output;
  const auto path = given.empty() ? context.config_path() : normalize_path(given, context.host.working_directory);
  TRY_ASSIGN(const auto there, print ? Result<sys::Entry>{} : check_new(context, path));
  // Elsewhere than below /etc the file system decides who may write.
  const bool needs_root = !print && !context.flags.changes_nothing() && is_under(path, "/etc");
  if (needs_root && context.system.identity().uid != 0)
    return fail(ErrorCode::permission, "only root may write " + path, "run as root, or give --output FILE");
  TRY_ASSIGN(const auto facts, find_init_facts(context.system, context.flags.root == "/"));
  const auto text = init_text(facts);
  if (print) {
    context.envelope.fields["text"] = to_utf8(text);
    context.console.print(text);
    context.console.message("the file has " + summary_of(facts, text));
    return k_exit_ok;
  }
  TRY_ASSIGN(const auto plan, plan_file(there, text));
  context.envelope.fields["file"] = to_utf8(path);
  TRY_ASSIGN(const auto executed, execute(context, plan, ""));
  const bool written = executed.applied() && executed.exit_code == k_exit_ok;
  if (written)
    context.console.message("next: edit " + path + ", then run " + check_command(context, path));
  if (written || !executed.applied())
    context.console.message(fmt::format("the file {} {}", written ? "has" : "would have", summary_of(facts, text)));
  return executed.exit_code;
}

} // namespace

extern const CommandSpec k_init_command{
    .name = "init",
    .summary = "Write a sharefs.yaml with what is found on this host",
    .description = "Looks for exports (/etc/exports and /etc/exports.d), NFS mounts, also those of fstab, units and "
                   "rc.local, and a hostfile, and writes a commented sharefs.yaml that takes them over exactly as they "
                   "are: a cluster that was set up by hand goes on as it did. Other storage is named and left alone. "
                   "What was not found stands there as an example in comments. A file that exists is never "
                   "overwritten.",
    .example = "sudo sharefs init                   # writes /etc/sharefs/sharefs.yaml\n"
               "sharefs init --output sharefs.yaml --yes\n"
               "sharefs init --output -             # only shows it",
    .changes = true,
    .options = {{.names = "--output",
                 .value = "FILE",
                 .help = "write this file instead of the one that is read; - prints it"},
                {.names = "--import", .help = "no effect; accepted for older scripts"}},
    .run = run_init,
};

} // namespace sharefs::cli
