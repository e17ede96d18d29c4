// sharefs cachefix script FILE: lists the programs and caches of a shell script, and what takes the guard away.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/script.hpp"
#include "cli/context.hpp"
#include "ui/table.hpp"

namespace sharefs::cli {
namespace {

constexpr std::size_t k_most_bytes = 1U << 20U;

Json mentions_json(const std::vector<cachefix::Mention>& mentions, const char* says) {
  auto json = Json::array();
  for (const cachefix::Mention& one : mentions)
    json.push_back({{"line", one.line}, {"name", to_utf8(one.subject)}, {says, to_utf8(one.says)}});
  return json;
}

Result<int> run_cachefix_script(Context& context, const Arguments& arguments) {
  const std::string& file = arguments.positional.front();
  sys::EntryQuery query{.path = normalize_path(file, context.host.working_directory), .follow = true};
  query.read_bytes = k_most_bytes;
  const sys::Entry script = context.system.entry(query); // may lie on a share that hangs, so a child reads it
  if (script.error_number != 0)
    return fail(script.error());
  if (script.kind != sys::EntryKind::file)
    return fail(ErrorCode::not_found, file + ": no such file");
  if (script.size > k_most_bytes)
    return fail(ErrorCode::failed, file + ": too large for a script");
  cachefix::Facts facts(context.system, {});
  const cachefix::ScriptReport report =
      cachefix::read_script(script.content, facts, {file, cachefix::Started::submitted});
  Diagnoses losses;
  for (cachefix::Mention one : report.losses) {
    one.subject = file + ":" + std::to_string(one.line) + ": " + one.subject;
    losses.push_back(*cachefix::warning(one).diagnosis);
  }
  ui::Table table({{"LINE", true}, {"WHAT"}, {"NAME", false, true}, {"", false, true}});
  for (const cachefix::Mention& one : report.programs)
    table.add({{std::to_string(one.line)}, {"program"}, {to_utf8(one.subject)}, {one.says}});
  for (const cachefix::Mention& one : report.caches)
    table.add({{std::to_string(one.line)}, {"cache"}, {to_utf8(one.subject)}, {to_utf8(one.says)}});
  context.envelope.fields = {{"script_file", to_utf8(file)},
                             {"programs", mentions_json(report.programs, "launchers")},
                             {"caches", mentions_json(report.caches, "value")}};
  context.console.show(table);
  context.report(losses);
  if (losses.empty())
    context.console.message(file + ": `sharefs run -- bash " + file + "` guards every Python program in it");
  return k_exit_ok;
}

} // namespace

extern const CommandSpec k_cachefix_script_command{
    .name = "cachefix script",
    .summary = "Show what a shell script starts, which caches it names, and what in it is not guarded",
    .description =
        "Looks through a bash or sbatch script for words only: the programs that it starts, the caches that it "
        "names, and what takes the guard of `sharefs run` away from its programs (ssh, sudo, containers, "
        "`env -i`, `--export=`, another PYTHONPATH). Runs nothing and changes nothing.",
    .example = "sharefs cachefix script train.sbatch",
    .positional = {.name = "FILE", .help = "the script", .min = 1, .max = 1},
    .run = run_cachefix_script,
};

} // namespace sharefs::cli
