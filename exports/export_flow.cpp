#include "exports/export_flow.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "exports/diagnose.hpp"
#include "plan/check_action.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <thread>

namespace sharefs::exports {

namespace {

/// After its start mountd needs a moment until it is registered and answers.
constexpr int k_listing_attempts = 5;
constexpr std::chrono::milliseconds k_listing_pause{400};
constexpr std::chrono::milliseconds k_listing_timeout{3000};

/// Probes the host. `known` holds names that were resolved before, so that they are not asked again while the host lock
/// is held.
Result<Actual> probe_host(sys::System& system, const Request& request, const Names& known) {
  Actual actual;
  TRY_ASSIGN(actual.files, read_host_files(system.files()));
  TRY_ASSIGN(actual.etab, read_etab(system.files()));
  // The desired exports are probed together with those of the files.
  auto asked = actual.files.files;
  asked.emplace_back().exports = request.exports;
  TRY_ASSIGN(actual.facts, probe_facts(system, asked, request.remove, known));
  if (!actual.files.waits_for.empty())
    actual.facts.waits_for = actual.files.waits_for;
  TRY_ASSIGN(actual.server, probe_server(system));
  return actual;
}

/// Reads the access of the directories. It runs after the diagnoses, so that a directory that must not be exported is
/// not read at all.
Result<void> probe_access(sys::System& system, const Request& request, Actual& actual) {
  for (const auto& [directory, wanted] : request.access) {
    const auto entry = actual.facts.directories.find(directory);
    if (entry == actual.facts.directories.end())
      continue;
    if (entry->second.exists()) {
      TRY_ASSIGN(const auto found, plan::read_access(system, entry->second.resolved, true));
      actual.access.emplace(directory, found.access);
    }
    if (!request.recursive)
      continue;
    const auto tree = tree_access(actual, directory, wanted);
    TRY_ASSIGN(const auto checked, tree ? plan::check_action(*tree, system) : plan::CheckedAction{true, {}});
    if (!checked.already)
      actual.trees.push_back(*tree);
  }
  return {};
}

/// Returns the diagnoses of the desired exports, before anything is changed.
Diagnoses diagnose_desired(const Actual& actual, const Request& request, const Composed& composed) {
  Diagnoses found = diagnose_access(actual, request);
  const auto own = std::ranges::find(composed.files, k_own_file, &ExportsFile::name);
  for (const auto& entry : composed.exports)
    std::ranges::move(diagnose_entry(entry, own->refused), std::back_inserter(found));
  if (has_errors(found))
    return found; // an entry that exports(5) cannot express cannot be checked further
  for (auto& diagnosis : diagnose(composed.files, composed.expected, actual.facts)) {
    const bool to_be_made = diagnosis.code == "SF123" && diagnosis.severity != Severity::error;
    if (diagnosis.code == "SF138") // only a warning in files of others, who are responsible for them
      diagnosis.severity = Severity::error;
    if (diagnosis.code == "SF115") // the duplicate is in another file: sharefs.yaml has each pair only once
      diagnosis.hint = "take the line out of that file, then run this again";
    const bool is_ours =
        diagnosis.subject == request.config_file || diagnosis.subject.starts_with(request.config_file + ":");
    if ((is_ours && !to_be_made) || diagnosis.code == "SF158")
      found.push_back(std::move(diagnosis));
  }
  for (const auto& file : composed.files)
    if (!file.complete && file.name != k_own_file)
      found.push_back({Severity::warning, "SF111", file.name,
                       "exportfs cannot read the whole of this file; it is left alone",
                       fmt::format("run `sharefs export check {}`", shell_quote(file.name)), ""});
  return found;
}

/// Checks that each directory answers and that the programs of a server are installed.
Result<void> check_host(const Actual& actual, const Request& request) {
  // A request for some exports keeps the others in the own file, so the whole file has to be readable.
  for (const auto& file : actual.files.files)
    if (file.name == k_own_file && !file.complete && !request.exactly)
      return fail(ErrorCode::conflict, fmt::format("{} was changed by hand and cannot be read", file.name),
                  "run `sharefs export --all`, which makes it anew");
  if (!request.exports.empty())
    TRY(check_installed(actual.server));
  for (const auto& entry : request.exports)
    if (const auto place = actual.facts.directories.find(entry.directory);
        place != actual.facts.directories.end() && place->second.kind == sys::EntryKind::unknown)
      return fail(place->second.error());
  return {};
}

std::string nothing_to_do(const Request& request, const Composed& composed) {
  if (!request.exports.empty())
    return count_of(count_directories(request.exports), "export") + ": nothing to do";
  return composed.exports.empty() ? "sharefs exports nothing here: nothing to do" : "nothing to do";
}

/// Verifies the exports over the network, with some attempts for a server that was just started.
Diagnoses check_listing(sys::System& system, const Proposed& proposed, const std::string& address) {
  sys::NfsProbeRequest request;
  request.host = address;
  request.want_access = false;
  request.timeout = k_listing_timeout;
  Diagnoses found;
  for (int attempt = 1; attempt <= k_listing_attempts; ++attempt) {
    found = verify_listing(proposed.composed, proposed.actual.facts, system.probe_nfs(request));
    if (!has_errors(found) || attempt == k_listing_attempts)
      break;
    std::this_thread::sleep_for(k_listing_pause);
  }
  return found;
}

/// Reads a file that the user named. It may lie on a dead mount, so a child with a deadline reads it.
Result<std::string> read_named(sys::System& system, const std::string& path, const std::string& name) {
  constexpr std::size_t k_limit = 16U << 20U;
  constexpr std::chrono::milliseconds k_patience{5000};
  auto entry = system.entry({.path = path, .follow = true, .read_bytes = k_limit}, k_patience);
  if (entry.kind == sys::EntryKind::missing)
    return fail(ErrorCode::not_found, fmt::format("there is no file {}", name),
                "`sharefs export check` without a name checks the files of this host");
  if (entry.error_number != 0)
    return fail(errno_error(entry.error_number, name));
  if (entry.kind != sys::EntryKind::file)
    return fail(ErrorCode::usage, fmt::format("{} is no file", name.empty() ? "an empty name" : name),
                "name exports files, or `-` for the standard input");
  if (entry.size > k_limit)
    return fail(ErrorCode::failed, fmt::format("{} is larger than {}", name, format_bytes(k_limit)));
  return std::move(entry.content);
}

Result<HostFiles> read_named_files(sys::System& system, const CheckRequest& request) {
  HostFiles host;
  for (const auto& name : request.names) {
    const bool is_input = name == "-";
    TRY_ASSIGN(const auto text, is_input ? Result<std::string>(request.standard_input)
                                         : read_named(system, join_path(request.directory, name), name));
    host.files.push_back(parse(text, is_input ? "<stdin>" : name));
  }
  return host;
}

} // namespace

Result<void> propose(sys::System& system, const Request& request, Proposed& proposed, const plan::Say& say) {
  const auto progress = say.progress("looking at the exports");
  TRY_ASSIGN(proposed.actual, probe_host(system, request, proposed.actual.facts.names));
  proposed.plan = {};
  TRY(check_host(proposed.actual, request));
  proposed.composed = compose(proposed.actual, request, [&system](auto& files, const auto& facts) {
    return ask_exportfs(system, files, facts, Scope::host);
  });
  proposed.nothing = nothing_to_do(request, proposed.composed);
  auto found = diagnose_desired(proposed.actual, request, proposed.composed);
  std::ranges::move(diagnose_members(system, request), std::back_inserter(found));
  if (found != proposed.found) // the same diagnoses are reported once, even if the plan is made again
    say.report(found);
  proposed.found = std::move(found);
  if (has_errors(proposed.found))
    return fail(ErrorCode::failed, "the exports of sharefs.yaml cannot be put into force; nothing was changed",
                "correct the errors above");
  TRY(probe_access(system, request, proposed.actual));
  proposed.plan = plan_export(proposed.actual, request, proposed.composed);
  if (const auto adhoc = diagnose_adhoc(request, proposed.composed, proposed.plan); !adhoc.empty()) {
    say.report(adhoc);
    return fail(ErrorCode::conflict, "exports that stand in no file would be dropped; nothing was changed",
                "see the errors above");
  }
  return {};
}

Result<Diagnoses> verify(sys::System& system, const Request& request, const Proposed& proposed, const plan::Say& say) {
  const auto progress = say.progress("verifying");
  TRY_ASSIGN(const auto etab, read_etab(system.files()));
  const auto& facts = proposed.actual.facts;
  auto found = verify_etab(proposed.composed, facts, etab);
  if (!has_errors(found) && !proposed.composed.exports.empty())
    std::ranges::move(check_listing(system, proposed, request.address), std::back_inserter(found));
  return found;
}

Result<Checked> check(sys::System& system, const CheckRequest& request, const plan::Say& say) {
  const bool of_host = request.names.empty();
  const bool judged = of_host || request.against_host;
  TRY_ASSIGN(auto host, of_host ? read_host_files(system.files()) : read_named_files(system, request));
  const auto progress = say.progress("asking exportfs");
  TRY_ASSIGN(auto facts, probe_facts(system, host.files, {}, {}, judged));
  if (!host.waits_for.empty())
    facts.waits_for = host.waits_for;
  Checked checked{std::move(host), {}, {}};
  auto& files = checked.host.files;
  checked.expected = ask_exportfs(system, files, facts, of_host ? Scope::host : Scope::given);
  checked.found = diagnose(files, checked.expected, judged ? facts : HostFacts());
  std::ranges::copy(checked.host.diagnoses, std::back_inserter(checked.found));
  return checked;
}

} // namespace sharefs::exports
