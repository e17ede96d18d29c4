// sharefs cachefix script FILE: what of a bash or sbatch script would race, and a changed copy.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/document.hpp"
#include "cachefix/facts.hpp"
#include "cachefix/shell_sanitize.hpp"
#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/exit_code.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

namespace sharefs::cli {
namespace {

constexpr std::chrono::milliseconds k_script_deadline{10'000};
constexpr std::size_t k_most_text = 4U << 20U;

Result<int> run_cachefix_script(Context& context, const Arguments& arguments) {
  const std::string& file = arguments.positional.front();
  const std::string path = normalize_path(file, context.host.working_directory);
  const auto config = context.config_if_any();
  if (!config)
    return fail(config.error());
  const config::Caches caches = *config == nullptr ? config::Caches{} : (*config)->caches;
  cachefix::Rules rules;
  for (const config::CacheRule& rule : caches.rules)
    rules.user.push_back({rule.program, rule.flag, rule.place == "local", rule.origin.text()});
  // The script lies on the share more often than not.
  sys::InspectRequest request;
  sys::PathQuery query;
  query.path = path;
  query.follow = true;
  query.read_bytes = k_most_text;
  request.queries = {query};
  const auto seen = context.system.inspect(request);
  if (!seen)
    return fail(seen.error());
  if (seen->empty() || seen->front().kind != sys::PathKind::file || seen->front().error_number != 0)
    return fail(ErrorCode::not_found, file + ": no such file, or it cannot be read");
  if (seen->front().size > k_most_text)
    return fail(ErrorCode::failed, file + ": too large for a script");
  const std::string& text = seen->front().content;

  cachefix::Prober prober(context.system, {caches.local, parse_size(caches.min_free).value_or(0)});
  cachefix::Facts facts = prober.begin(context.host.environment, context.host.working_directory);
  cachefix::ScriptResult result = cachefix::sanitize_script(file, text, facts, rules);
  for (int round = 0; round < 32 && !result.sanitized.questions.empty(); ++round) {
    if (auto answered = prober.answer(result.sanitized.questions, facts); !answered)
      return fail(answered.error());
    result = cachefix::sanitize_script(file, text, facts, rules);
  }
  context.report(result.sanitized.diagnoses);
  const auto copy = arguments.value("write");
  if (context.flags.json) {
    auto fields = cachefix::document({"bash", file}, result.sanitized);
    fields["script_file"] = file;
    fields["copy"] = copy ? nlohmann::ordered_json(*copy) : nlohmann::ordered_json(nullptr);
    context.envelope.fields = std::move(fields);
  } else {
    for (const cachefix::Change& change : result.sanitized.changes)
      context.console.message("sharefs: " + cachefix::describe(change));
    if (result.sanitized.changes.empty())
      context.console.message(file + ": nothing to change");
  }
  if (!copy)
    return k_exit_ok;
  const std::string target = normalize_path(*copy, context.host.working_directory);
  if (target == path)
    return fail(ErrorCode::usage, "`--write` names the script itself, which is never edited", "name another file");
  const auto written = sys::in_child(std::nullopt, k_script_deadline, [&]() -> Result<std::string> {
    if (auto done = context.system.files().write(target, result.text, seen->front().mode & 0777U); !done)
      return fail(done.error());
    return std::string();
  });
  if (!written)
    return fail(written.error());
  return k_exit_ok;
}

} // namespace

extern const CommandSpec k_cachefix_script_command = {
    .name = "cachefix script",
    .summary = "Show what of a bash or sbatch script would race, and write a changed copy",
    .description =
        "Reads the script with a real shell parser (shfmt), judges every command in it as `sharefs run` would, and "
        "names "
        "each change with its line and column. The script itself is never edited; with --write a changed copy is made, "
        "in which everything else is the same byte for byte.",
    .example = "sharefs cachefix script train.sbatch\n"
               "sharefs cachefix script train.sbatch --write train.local.sbatch",
    .effect = Effect::reads,
    .positional = {.name = "FILE", .help = "the script", .min = 1, .max = 1},
    .options = {{.names = "--write", .value = "COPY", .help = "write the changed script to this file"}},
    .run = run_cachefix_script,
};

} // namespace sharefs::cli
