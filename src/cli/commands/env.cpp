// sharefs env: prints the variables that guard every Python program of a shell.
#include "base/argv.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/cachefix_choices.hpp"

namespace sharefs::cli {
namespace {

/// Quotes text for fish(1), which needs only a backslash and a single quote escaped in single quotes.
std::string fish_quote(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'')
      quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

Result<int> run_env(Context& context, const Arguments& arguments) {
  const std::string shell = arguments.value("shell").value_or("sh");
  const bool fish = shell == "fish";
  if (!fish && shell != "sh" && shell != "bash" && shell != "zsh")
    return fail(ErrorCode::usage, "option `--shell` does not know `" + shell + "`", "one of sh, bash, zsh, fish");
  TRY_ASSIGN(const auto choices, choices_of(context));
  const auto guard = guard_of(context, choices);
  if (!guard && guard.error().code != ErrorCode::not_found)
    return fail(guard.error());
  cachefix::Variables variables;
  if (guard)
    variables = cachefix::guard_variables(*guard, context.environment("PYTHONPATH").value_or(""));
  else if (context.flags.verbose) // no error, because a job script goes on without a guard
    context.console.message("sharefs: programs are not guarded: " + guard.error().message);
  auto json = Json::object();
  for (const auto& [name, value] : variables) {
    json[name] = to_utf8(value);
    context.console.print(fish ? "set -gx " + name + " " + fish_quote(value) + "\n"
                               : "export " + name + "=" + single_quote(value) + "\n");
  }
  context.envelope.fields["environment"] = std::move(json);
  return k_exit_ok;
}

} // namespace

extern const CommandSpec k_env_command{
    .name = "env",
    .summary = "Print the variables by which Python programs of a shell are guarded",
    .description =
        "For job scripts and profile.d: what is evaluated puts the guard in front of PYTHONPATH and sets the "
        "variables that it reads, and no others. Programs that the shell then starts end the dataset cache "
        "race by themselves, as `sharefs run` has it. Prints nothing where the guard is switched off "
        "(SHAREFS_GUARD=0, `caches.guard: off`) or not installed; -v says why.",
    .example = "eval \"$(sharefs env)\"\n"
               "sharefs env --shell fish | source",
    .options = {{.names = "--shell", .value = "SHELL", .help = "sh, bash, zsh or fish", .fallback = "sh"}},
    .run = run_env,
};

} // namespace sharefs::cli
