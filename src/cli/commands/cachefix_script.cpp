// sharefs cachefix script FILE: what of a bash or sbatch script would race, and a changed copy.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/sanitize.hpp"
#include "cli/commands/cachefix_choices.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

namespace sharefs::cli {
namespace {

/// The copy as a plan: a new file, or with --force another content for the one that is there.
Result<Proposal> propose_copy(Context& context, const std::string& copy, const std::string& text, std::uint32_t mode,
                              bool force) {
  const std::string path = normalize_path(copy, context.host.working_directory);
  const auto before = context.system.files().read_if_exists(path, cachefix::Budget::k_text);
  if (!before)
    return fail(before.error());
  Proposal proposal{{}, copy + " is written already"};
  if (*before == text)
    return proposal;
  if (*before && !force)
    return fail(ErrorCode::usage, copy + ": exists already", "name another file, or replace it with --force");
  proposal.plan.add(path, "the changed script", plan::File{path, *before, text, mode});
  return proposal;
}

Result<int> run_cachefix_script(Context& context, const Arguments& arguments) {
  const std::string& file = arguments.positional.front();
  const std::string path = normalize_path(file, context.host.working_directory);
  const auto choices = choices_of(context);
  if (!choices)
    return fail(choices.error());
  // The script lies on the share more often than not.
  sys::EntryQuery query;
  query.path = path;
  query.follow = true;
  query.read_bytes = cachefix::Budget::k_text;
  const sys::Entry script = context.system.files().entry(query);
  if (script.error_number != 0)
    return fail(script.error());
  if (script.kind != sys::EntryKind::file)
    return fail(ErrorCode::not_found, file + ": no such file");
  if (script.size > cachefix::Budget::k_text)
    return fail(ErrorCode::failed, file + ": too large for a script");
  cachefix::MachineAnswers answers(context.system, choices->local);
  cachefix::Stakes stakes(answers);
  cachefix::Rules rules = choices->rules;
  rules.node = words_on_a_node(context, stakes);
  const cachefix::ScriptResult result =
      cachefix::sanitize_script(file, script.content, start_of(context), stakes, rules);
  if (answers.error())
    return fail(*answers.error());
  context.report(result.sanitized.diagnoses);
  const auto copy = arguments.value("write");
  if (context.flags.json) {
    auto fields = cachefix::document({"bash", file}, result.sanitized);
    fields["script_file"] = file;
    fields["copy"] = copy ? nlohmann::ordered_json(*copy) : nlohmann::ordered_json(nullptr);
    context.envelope.fields = std::move(fields);
  } else {
    for (const std::string& line : cachefix::describe_changes(result.sanitized))
      context.console.message("sharefs: " + line);
    if (result.sanitized.changes().empty())
      context.console.message(file + ": nothing to change");
  }
  if (!copy)
    return k_exit_ok;
  if (normalize_path(*copy, context.host.working_directory) == path)
    return fail(ErrorCode::usage, "`--write` names the script itself, which is never edited", "name another file");
  const auto propose = [&] {
    return propose_copy(context, *copy, result.text, script.mode & 0777U, arguments.flag("force"));
  };
  return execute(context, propose).map(&Executed::exit_code);
}

} // namespace

extern const CommandSpec k_cachefix_script_command{
    .name = "cachefix script",
    .summary = "Show what of a bash or sbatch script would race, and write a changed copy",
    .description =
        "Reads the script with a real shell parser (shfmt), judges every command in it as `sharefs run` would, and "
        "names each change with its line and column. The script itself is never edited; with --write a changed copy is "
        "made, in which everything else is the same byte for byte. A file that exists is replaced with --force only.",
    .example = "sharefs cachefix script train.sbatch\n"
               "sharefs cachefix script train.sbatch --write train.local.sbatch --yes",
    .effect = Effect::changes,
    .positional = {.name = "FILE", .help = "the script", .min = 1, .max = 1},
    .options = {{.names = "--write", .value = "COPY", .help = "write the changed script to this new file"},
                {.names = "--force", .help = "with --write: replace the file if it exists"}},
    .run = run_cachefix_script,
};

} // namespace sharefs::cli
