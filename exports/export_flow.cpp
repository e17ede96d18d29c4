#include "exports/export_flow.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/diagnose.hpp"
#include "exports/members.hpp"
#include "exports/take_over.hpp"
#include "exports/verify.hpp"
#include "plan/look.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <thread>

namespace sharefs::exports {

namespace {

/// mountd needs a moment after its start until it is registered and answers.
constexpr int k_listing_attempts = 5;
constexpr std::chrono::milliseconds k_listing_pause{400};
constexpr std::chrono::milliseconds k_listing_timeout{3000};

Ask asking(sys::System& system) {
  return [&system](const std::vector<ExportsFile>& files, const HostFacts& facts) {
    return ask_exportfs(system, files, facts, Scope::host);
  };
}

/// `known`: names that were looked up before, and are not asked again while the host lock is held.
Result<Actual> gather(sys::System& system, const Request& request, const Names& known) {
  Actual actual;
  auto files = read_host_files(system.files());
  if (!files)
    return fail(files.error());
  actual.files = std::move(*files);
  auto etab = read_etab(system.files());
  if (!etab)
    return fail(etab.error());
  actual.etab = std::move(*etab);
  // The desired clients are asked about together with those of the files.
  auto asked = actual.files.files;
  asked.emplace_back().exports = request.exports;
  auto facts = probe_facts(system, asked, request.remove, known);
  if (!facts)
    return fail(facts.error());
  actual.facts = std::move(*facts);
  auto server = probe_server(system);
  if (!server)
    return fail(server.error());
  actual.server = std::move(*server);
  return actual;
}

/// What the exports of the host become when lines of others' files move to sharefs'. The texts are read again, since
/// what is compared has to be what is written.
Result<TakeOver> gather_take_over(sys::System& system, Actual actual, const Request& wanted) {
  std::map<std::string, std::string> texts;
  for (auto& file : actual.files.files) {
    if (file.name == k_own_file)
      continue;
    auto text = system.files().read(file.name);
    if (!text)
      return fail(text.error());
    file = parse(*text, file.name);
    texts[file.name] = std::move(*text);
  }
  return take_over(actual, wanted, texts, asking(system));
}

/// Only of directories that can be exported: others are not touched at all.
Result<void> gather_access(sys::System& system, const Request& request, Actual& actual) {
  for (const auto& [directory, wanted] : request.access) {
    const auto entry = actual.facts.directories.find(directory);
    if (entry == actual.facts.directories.end())
      continue;
    if (entry->second.exists()) {
      const auto found = plan::read_access(system, entry->second.resolved, true);
      if (!found)
        return fail(found.error());
      actual.access.emplace(directory, found->access);
    }
    if (!request.recursive)
      continue;
    const auto tree = tree_access(actual, directory, wanted);
    const auto looked = tree ? plan::look_at(*tree, system) : plan::Looked{true, {}};
    if (!looked)
      return fail(looked.error());
    if (!looked->already)
      actual.trees.push_back(*tree);
  }
  return {};
}

bool is_about(const Diagnosis& diagnosis, const std::string& file) {
  return diagnosis.subject == file || diagnosis.subject.starts_with(file + ":");
}

/// What is to be said about the desired exports before anything is changed.
Diagnoses diagnose_desired(const Actual& actual, const Request& request, const Composed& composed,
                           const std::string& config_file) {
  Diagnoses found = diagnose_access(actual, request);
  for (const auto& entry : composed.exports)
    if (entry.origin.file != k_own_file)
      std::ranges::move(diagnose_entry(entry), std::back_inserter(found));
  if (has_errors(found))
    return found; // what exports(5) cannot hold cannot be judged further
  for (auto& diagnosis : diagnose(composed.files, composed.expected, actual.facts)) {
    const bool to_be_made = diagnosis.code == "SF123" && diagnosis.severity != Severity::error;
    if (diagnosis.code == "SF138") // a warning of other files, which others answer for
      diagnosis.severity = Severity::error;
    if ((is_about(diagnosis, config_file) && !to_be_made) || diagnosis.code == "SF158")
      found.push_back(std::move(diagnosis));
  }
  for (const auto& file : actual.files.files)
    if (!file.complete && file.name != k_own_file)
      found.push_back({Severity::warning, "SF111", file.name,
                       "exportfs cannot read the whole of this file; it is left alone",
                       fmt::format("run `sharefs export check {}`", file.name), ""});
  return found;
}

/// Naming some exports keeps the others of own file, so all of it has to be understood.
Result<void> check_own_file(const HostFiles& files, const Request& request) {
  for (const auto& file : files.files)
    if (file.name == k_own_file && !file.complete && !request.exactly)
      return fail(ErrorCode::conflict, fmt::format("{} was changed by hand and cannot be read", file.name),
                  "run `sharefs export --all`, which makes it anew");
  return {};
}

/// Each directory answers, and the programs of a server are there.
Result<void> check_host(const Actual& actual, const Request& request) {
  if (!request.exports.empty())
    if (auto installed = check_installed(actual.server); !installed)
      return fail(installed.error());
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

/// Said once, also if the plan is made again.
Result<void> report_found(Look& look, Diagnoses found, const plan::Say& say, std::string failure) {
  if (found != look.found)
    say.report(found);
  look.found = std::move(found);
  if (has_errors(look.found))
    return fail(ErrorCode::failed, std::move(failure), "correct the errors above");
  return {};
}

/// The exports over the network.
Diagnoses check_listing(sys::System& system, const Look& look, const std::string& address) {
  sys::NfsProbeRequest request;
  request.host = address;
  request.want_access = false;
  request.timeout = k_listing_timeout;
  Diagnoses found;
  for (int attempt = 1; attempt <= k_listing_attempts; ++attempt) {
    found = verify_listing(look.composed, look.actual.facts, system.probe_nfs(request));
    if (!has_errors(found) || attempt == k_listing_attempts)
      break;
    std::this_thread::sleep_for(k_listing_pause);
  }
  return found;
}

/// The diagnoses of the desired exports, with those of the server and of the users.
Diagnoses diagnose_all(sys::System& system, const Task& task, const Request& request, const Look& look) {
  auto found = diagnose_desired(look.actual, request, look.composed, task.config_file);
  std::ranges::move(check_security(system, request.exports), std::back_inserter(found));
  if (!task.members.empty())
    std::ranges::move(diagnose_members(probe_members(system, task.members), request.access), std::back_inserter(found));
  return found;
}

} // namespace

Result<void> propose(sys::System& system, const Task& task, Look& look, const plan::Say& say) {
  const auto progress = say.progress("looking at the exports");
  auto actual = gather(system, task.request, look.actual.facts.names);
  if (!actual)
    return fail(actual.error());
  look.actual = std::move(*actual);
  look.plan = {};
  auto request = task.request;
  if (task.take_over) {
    auto taken = gather_take_over(system, look.actual, request);
    if (!taken)
      return fail(taken.error());
    if (auto reported = report_found(look, std::move(taken->found), say,
                                     "the lines cannot move to sharefs' file without a change; nothing was changed");
        !reported)
      return reported;
    look.nothing = "no other exports file has an export of sharefs.yaml: nothing to take over";
    if (taken->request.moved.empty())
      return {};
    look.actual = std::move(taken->actual);
    request = std::move(taken->request);
  }
  if (auto whole = check_own_file(look.actual.files, request); !whole)
    return whole;
  if (auto ready = check_host(look.actual, request); !ready)
    return ready;
  look.composed = compose(look.actual, request, asking(system));
  look.nothing = nothing_to_do(request, look.composed);
  if (auto reported = report_found(look, diagnose_all(system, task, request, look), say,
                                   "the exports of sharefs.yaml cannot be put into force; nothing was changed");
      !reported)
    return reported;
  if (!look.composed.retired.empty())
    look.actual.mounted = read_mounted(system);
  if (auto gathered = gather_access(system, request, look.actual); !gathered)
    return gathered;
  look.plan = plan_export(look.actual, request, look.composed);
  if (const auto adhoc = diagnose_adhoc(request, look.composed, look.plan); !adhoc.empty()) {
    say.report(adhoc);
    return fail(ErrorCode::conflict, "exports that stand in no file would be dropped; nothing was changed",
                "see the errors above");
  }
  return {};
}

Result<Diagnoses> verify(sys::System& system, const Task& task, const Look& look, const plan::Say& say) {
  const auto progress = say.progress("verifying");
  const auto etab = read_etab(system.files());
  if (!etab)
    return fail(etab.error());
  const auto& facts = look.actual.facts;
  if (task.take_over) {
    auto before = look.actual.etab;
    const ExportIndex adhoc(facts, look.composed.adhoc);
    std::erase_if(before, [&](const Export& entry) { return adhoc.has(entry); });
    return changes(before, *etab, facts, false);
  }
  auto found = verify_etab(look.composed, facts, *etab);
  if (!has_errors(found) && !look.composed.exports.empty())
    std::ranges::move(check_listing(system, look, task.address), std::back_inserter(found));
  return found;
}

Result<Checked> check(sys::System& system, const HostFiles& host, Scope scope, bool judged) {
  const auto facts = judged ? probe_facts(system, host.files) : probe_directories(system, host.files);
  if (!facts)
    return fail(facts.error());
  Checked checked{ask_exportfs(system, host.files, *facts, scope), {}};
  checked.found = diagnose(host.files, checked.expected, judged ? *facts : HostFacts());
  checked.found.insert(checked.found.end(), host.diagnoses.begin(), host.diagnoses.end());
  return checked;
}

Result<void> note_withdrawn(sys::System& system, plan::Plan& plan) {
  std::map<std::string, std::string> changed; // texts; "" for a file that goes
  const auto is_of_exports = [](const std::string& path) {
    return path == k_exports_file || parent_path(path) == k_exports_directory;
  };
  for (const auto& step : plan.steps)
    if (const auto* file = std::get_if<plan::File>(&step.action); file != nullptr && is_of_exports(file->path))
      changed[file->path] = file->after.value_or("");
  if (changed.empty())
    return {};
  auto files = read_host_files(system.files());
  if (!files)
    return fail(files.error());
  const auto etab = read_etab(system.files());
  if (!etab)
    return fail(etab.error());
  auto& after = files->files;
  std::erase_if(after, [&](const ExportsFile& file) { return changed.contains(file.name); });
  for (const auto& [path, text] : changed) {
    after.push_back(parse(text, path));
    after.back().text = text;
  }
  auto asked = after;
  asked.emplace_back().exports = *etab;
  const auto facts = probe_facts(system, asked);
  if (!facts)
    return fail(facts.error());
  const auto dropped = dropped_by(ask_exportfs(system, after, *facts, Scope::host), *etab, *facts);
  if (!dropped.empty())
    std::ranges::move(notes_of_mounted(dropped, read_mounted(system), *facts), std::back_inserter(plan.notes));
  return {};
}

} // namespace sharefs::exports
