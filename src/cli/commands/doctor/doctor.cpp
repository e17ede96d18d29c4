// sharefs doctor: reports everything that is wrong with this host in one run, and repairs with one plan what can be
// repaired.
#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/doctor/parts.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/execute.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

Diagnoses by_severity(const std::vector<Part>& parts) {
  Diagnoses all;
  for (const auto& part : parts)
    mounts::append(all, part.found);
  std::ranges::stable_sort(all, std::greater{}, &Diagnosis::severity);
  return all;
}

/// Returns the last line: the number of findings, or that all is well and which parts were checked.
std::string summary(const std::vector<Part>& parts, const Diagnoses& found) {
  std::vector<std::string> words;
  if (found.empty()) {
    for (const auto& part : parts)
      if (!part.seen.empty())
        words.push_back(part.seen);
    const std::string missing = "run `sharefs init`, or copy the file from another machine of the cluster";
    if (words.empty())
      return "there is no sharefs.yaml, and nothing of sharefs is used here: " + missing;
    const auto what = join(words, ", ");
    return parts.front().seen.empty() ? fmt::format("there is no sharefs.yaml: {}; else all is well: {}", missing, what)
                                      : "all is well: " + what;
  }
  for (const auto& [severity, noun] :
       {std::pair{Severity::error, "error"}, {Severity::warning, "warning"}, {Severity::info, "note"}})
    if (const auto number = count(found, severity); number > 0)
      words.push_back(count_of(number, noun));
  return fmt::format("{}; `sharefs explain {}` says more", join(words, ", "), found.front().code);
}

Json parts_json(const std::vector<Part>& parts) {
  auto json = Json::array();
  for (const auto& part : parts)
    json.push_back({{"name", part.name},
                    {"seen", to_utf8(part.seen)},
                    {"errors", count(part.found, Severity::error)},
                    {"warnings", count(part.found, Severity::warning)},
                    {"notes", count(part.found, Severity::info)}});
  return json;
}

/// Puts the plans of all parts into one.
Result<Proposal> propose(Context& context, const std::vector<Part>& parts) {
  plan::Plan plan;
  bool for_root = false;
  for (const auto& part : parts) {
    plan.add(part.plan);
    for_root = for_root || (part.is_root && !part.plan.empty());
  }
  if (for_root)
    TRY(require_root(context, "only root can mend exports and mounts"));
  return Proposal{std::move(plan), "there is nothing that sharefs can repair by itself"};
}

/// Shows the plan, asks, applies it, and examines the host once more.
Result<int> mend(Context& context, Examination how, std::vector<Part> parts) {
  bool is_first = true;
  const auto propose_anew = [&] {
    if (!std::exchange(is_first, false))
      parts = examine(context, how);
    return propose(context, parts);
  };
  TRY_ASSIGN(const auto executed, execute(context, propose_anew));
  const bool has_faults = has_errors(by_severity(parts));
  if (!executed.applied())
    return executed.exit_code != k_exit_ok ? executed.exit_code : has_faults ? k_exit_failed : k_exit_ok;
  if (executed.stopped())
    return executed.exit_code;
  how.plans = false;
  const auto after = examine(context, how);
  const auto left = add_config(context, by_severity(after));
  context.envelope.fields["left"] = json_of(left);
  if (!context.flags.json)
    context.console.diagnoses(left);
  context.console.message(left.empty() ? summary(after, left) : "still: " + summary(after, left));
  return has_errors(left) ? k_exit_partly : executed.exit_code;
}

Result<Examination> examination_of(Context& context, const Arguments& arguments) {
  if (context.flags.root != "/")
    return fail(ErrorCode::unsupported, "doctor looks at a running system: --root is not possible here",
                "`sharefs export check` and `sharefs config check` work on files");
  Examination how;
  how.plans = arguments.flag("fix");
  if (!how.plans && context.flags.changes_nothing())
    return fail(ErrorCode::usage, "`--dry-run` and `--check` have no meaning without `--fix`",
                "`sharefs doctor` alone changes nothing");
  TRY_ASSIGN(how.timeout, arguments.time_limit("timeout", "10s"));
  TRY_ASSIGN(how.deadline, arguments.time_limit("deadline", "10s"));
  return how;
}

Result<int> run_doctor(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(auto how, examination_of(context, arguments));
  auto parts = examine(context, how);
  const auto found = by_severity(parts);
  context.envelope.fields["parts"] = parts_json(parts);
  context.report(found);
  context.console.message(summary(parts, found));
  if (how.plans)
    return mend(context, how, std::move(parts));
  return has_errors(found) ? k_exit_failed : k_exit_ok;
}

} // namespace

extern const CommandSpec k_doctor_command{
    .name = "doctor",
    .summary = "Say what is wrong with this host, and mend what can be mended",
    .description =
        "Looks at everything that sharefs knows of: sharefs.yaml, the exports if this host serves, the mounts and "
        "their servers, what is mounted at boot, the links to conda environments, where caches go, a run of sharefs "
        "that was cut off. Errors come first, then warnings, then notes, each with its code, its cause, and in the "
        "next line its cure. A part that "
        "fails or takes too long is reported, and does not stop the others. Exits with 1 if there are errors; "
        "warnings are allowed.\n"
        "--fix makes one plan of what `export --all`, `recover --all`, `mount --all` and `conda link --all` would do, "
        "shows it, and asks; then it looks once more, and exits with 4 if errors are left. `sharefs undo` takes it "
        "back. A mount that waits for its server is left alone.",
    .example = "sharefs doctor\n"
               "sharefs doctor --fix --dry-run\n"
               "sharefs doctor --json | jq '.diagnoses[] | {code, subject, message}'",
    .changes = true,
    .options = {{.names = "--fix", .help = "repair what can be repaired"},
                k_servers_timeout,
                {.names = "--deadline", .value = "TIME", .help = "start no further part after it", .fallback = "1min"}},
    .on_nodes = true,
    .run = run_doctor,
};

} // namespace sharefs::cli
