// sharefs export: this host's exports of sharefs.yaml are put into force, and it is checked whether they are.
#include "base/argv.hpp"
#include "base/text.hpp"
#include "cli/commands/export_support.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "exports/diagnose.hpp"
#include "exports/host.hpp"
#include "exports/members.hpp"
#include "exports/take_over.hpp"
#include "exports/verify.hpp"
#include "plan/look.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <thread>

namespace sharefs::cli {

namespace {

/// mountd needs a moment after its start until it is registered and answers.
constexpr int k_listing_attempts = 5;
constexpr std::chrono::milliseconds k_listing_pause{400};
constexpr std::chrono::milliseconds k_listing_timeout{3000};

/// The host as it was when the plan was made.
struct Look {
  exports::Actual actual;
  exports::Composed composed;
  plan::Plan plan;
  Diagnoses found; ///< and reported
};

/// `known`: names that were looked up before, and are not asked again while the host lock is held.
Result<exports::Actual> gather(Context& context, const exports::Request& request, const exports::Names& known) {
  const ui::Console::Progress progress(context.console, "looking at the exports");
  auto& system = context.system;
  exports::Actual actual;
  auto files = exports::read_host_files(system.files());
  if (!files)
    return fail(files.error());
  actual.files = std::move(*files);
  auto etab = exports::read_etab(system.files());
  if (!etab)
    return fail(etab.error());
  actual.etab = std::move(*etab);

  // The desired clients are asked about together with those of the files.
  auto asked = actual.files.files;
  asked.emplace_back().exports = request.exports;
  auto facts = exports::probe_facts(system, asked, request.remove, known);
  if (!facts)
    return fail(facts.error());
  actual.facts = std::move(*facts);
  auto server = exports::probe_server(system);
  if (!server)
    return fail(server.error());
  actual.server = std::move(*server);
  return actual;
}

/// What the exports of the host become when lines of others' files move to sharefs'. The texts are read again, since
/// what is compared has to be what is written.
Result<exports::TakeOver> gather_take_over(Context& context, exports::Actual actual, const exports::Request& wanted) {
  std::map<std::string, std::string> texts;
  for (auto& file : actual.files.files) {
    if (file.name == exports::k_own_file)
      continue;
    auto text = context.system.files().read(file.name);
    if (!text)
      return fail(text.error());
    file = exports::parse(*text, file.name);
    texts[file.name] = std::move(*text);
  }
  return exports::take_over(actual, wanted, texts);
}

/// Only of directories that can be exported: others are not touched at all.
Result<void> gather_access(Context& context, const exports::Request& request, exports::Actual& actual) {
  const ui::Console::Progress progress(context.console, "looking at the directories");
  for (const auto& [directory, wanted] : request.access) {
    const auto entry = actual.facts.directories.find(directory);
    if (entry == actual.facts.directories.end())
      continue;
    if (entry->second.exists()) {
      const auto found = plan::read_access(context.system, entry->second.resolved, true);
      if (!found)
        return fail(found.error());
      actual.access.emplace(directory, found->access);
    }
    if (!request.recursive)
      continue;
    const auto tree = exports::tree_access(actual, directory, wanted);
    const auto looked = tree ? plan::look_at(*tree, context.system) : plan::Looked{true, {}};
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
Diagnoses diagnose_desired(const exports::Actual& actual, const exports::Request& request,
                           const exports::Composed& composed, const std::string& config_file) {
  Diagnoses found = exports::diagnose_access(actual, request);
  for (const auto& entry : composed.exports)
    if (entry.origin.file != exports::k_own_file)
      std::ranges::move(exports::diagnose_entry(entry), std::back_inserter(found));
  if (has_errors(found))
    return found; // what exports(5) cannot hold cannot be judged further
  const auto files = exports::files_after(actual, composed);
  for (auto& diagnosis : exports::diagnose(files, exports::expected_etab(files, actual.facts), actual.facts)) {
    const bool to_be_made = diagnosis.code == "SF123" && diagnosis.severity != Severity::error;
    if (diagnosis.code == "SF138") // a warning of other files, which others answer for
      diagnosis.severity = Severity::error;
    if (is_about(diagnosis, config_file) && !to_be_made)
      found.push_back(std::move(diagnosis));
  }
  for (auto& diagnosis : exports::diagnose_precedence(files, exports::k_own_file, actual.facts))
    if (is_about(diagnosis, config_file))
      found.push_back(std::move(diagnosis));
  for (const auto& file : actual.files.files)
    if (!file.complete && file.name != exports::k_own_file)
      found.push_back({Severity::warning, "SF111", file.name,
                       "exportfs cannot read the whole of this file; it is left alone",
                       fmt::format("run `sharefs export check {}`", file.name), ""});
  return found;
}

/// The exports over the network. A server that was just started is given a moment.
Diagnoses check_listing(Context& context, const exports::Composed& composed, const exports::HostFacts& facts,
                        const std::string& address) {
  sys::NfsProbeRequest request;
  request.host = address;
  request.want_access = false;
  request.timeout = k_listing_timeout;
  Diagnoses found;
  for (int attempt = 1; attempt <= k_listing_attempts; ++attempt) {
    found = exports::verify_listing(composed, facts, context.system.probe_nfs(request));
    if (!has_errors(found) || attempt == k_listing_attempts)
      break;
    std::this_thread::sleep_for(k_listing_pause);
  }
  return found;
}

Result<Diagnoses> verify(Context& context, const exports::Actual& actual, const exports::Composed& composed,
                         const std::string& address, bool take_over) {
  const ui::Console::Progress progress(context.console, "verifying");
  const auto etab = exports::read_etab(context.system.files());
  if (!etab)
    return fail(etab.error());
  if (take_over) {
    auto before = actual.etab;
    const exports::ExportIndex adhoc(actual.facts, composed.adhoc);
    std::erase_if(before, [&](const exports::Export& entry) { return adhoc.has(entry); });
    return exports::changes(before, *etab, actual.facts, false);
  }
  auto found = exports::verify_etab(composed, actual, *etab);
  std::ranges::move(exports::verify_foreign(composed, actual, *etab), std::back_inserter(found));
  if (has_errors(found) || composed.exports.empty())
    return found;
  std::ranges::move(check_listing(context, composed, actual.facts, address), std::back_inserter(found));
  return found;
}

/// Naming some exports keeps the others of own file, so all of it has to be understood.
Result<void> check_own_file(const exports::HostFiles& files, const exports::Request& request) {
  for (const auto& file : files.files)
    if (file.name == exports::k_own_file && !file.complete && !request.exactly)
      return fail(ErrorCode::conflict, fmt::format("{} was changed by hand and cannot be read", file.name),
                  "run `sharefs export --all`, which makes it anew");
  return {};
}

std::vector<std::string> directories_of(const exports::HostFiles& files) {
  std::vector<std::string> directories;
  for (const auto& file : files.files)
    for (const auto& entry : file.exports)
      if (file.name == exports::k_own_file)
        directories.push_back(entry.directory);
  return directories;
}

std::string nothing_to_do(const exports::Request& request, const exports::Composed& composed) {
  if (!request.exports.empty())
    return count_of(exports::count_directories(request.exports), "export") + ": nothing to do";
  return composed.exports.empty() ? "sharefs exports nothing here: nothing to do" : "nothing to do";
}

/// Said once, also if the plan is made again.
Result<void> report_found(Context& context, Look& look, Diagnoses found, std::string failure) {
  if (found != look.found)
    context.report(found);
  look.found = std::move(found);
  if (has_errors(look.found))
    return fail(ErrorCode::failed, std::move(failure), "correct the errors above");
  return {};
}

/// Reads the host, and works out what to do. Called again when another run has changed the host meanwhile.
Result<Proposal> propose(Context& context, const exports::Request& wanted, const std::string& config_file, bool move,
                         Look& look) {
  auto actual = gather(context, wanted, look.actual.facts.names);
  if (!actual)
    return fail(actual.error());
  look.actual = std::move(*actual);
  auto request = wanted;
  if (move) {
    auto taken = gather_take_over(context, look.actual, wanted);
    if (!taken)
      return fail(taken.error());
    if (auto reported = report_found(context, look, std::move(taken->found),
                                     "the lines cannot move to sharefs' file without a change; nothing was changed");
        !reported)
      return fail(reported.error());
    if (taken->request.moved.empty())
      return Proposal{{}, "no other exports file has an export of sharefs.yaml: nothing to take over"};
    look.actual = std::move(taken->actual);
    request = std::move(taken->request);
  }
  if (auto whole = check_own_file(look.actual.files, request); !whole)
    return fail(whole.error());
  if (!request.exports.empty())
    if (auto installed = exports::check_installed(look.actual.server); !installed)
      return fail(installed.error());
  for (const auto& entry : request.exports)
    if (const auto place = look.actual.facts.directories.find(entry.directory);
        place != look.actual.facts.directories.end() && place->second.kind == sys::EntryKind::unknown)
      return fail(place->second.error());

  look.composed = exports::compose(look.actual, request);
  context.envelope.fields["exports"] = to_json(look.composed.exports);
  auto found = diagnose_desired(look.actual, request, look.composed, config_file);
  std::ranges::move(exports::check_security(context.system, request.exports), std::back_inserter(found));
  if (const auto config = context.config(); config && (*config)->conda)
    std::ranges::move(
        exports::diagnose_members(exports::probe_members(context.system, (*config)->conda->users()), request.access),
        std::back_inserter(found));
  if (auto reported = report_found(context, look, std::move(found),
                                   "the exports of sharefs.yaml cannot be put into force; nothing was changed");
      !reported)
    return fail(reported.error());
  if (!look.composed.retired.empty())
    look.actual.mounted = exports::read_mounted(context.system);
  if (auto gathered = gather_access(context, request, look.actual); !gathered)
    return fail(gathered.error());
  look.plan = exports::plan_export(look.actual, request, look.composed);
  if (const auto adhoc = exports::diagnose_adhoc(request, look.composed, look.plan); !adhoc.empty()) {
    context.report(adhoc);
    return fail(ErrorCode::conflict, "exports that stand in no file would be dropped; nothing was changed",
                "see the errors above");
  }
  return Proposal{look.plan, nothing_to_do(request, look.composed)};
}

/// Show, apply, check whether it is so, and take it back if it is not.
Result<int> put_into_force(Context& context, const exports::Request& request, const std::string& config_file,
                           const std::string& address, bool move) {
  Look look;
  const auto executed = execute(context, [&] { return propose(context, request, config_file, move, look); });
  if (!executed)
    return fail(executed.error());
  if (executed->exit_code != k_exit_ok || (!executed->applied() && !look.plan.empty()))
    return executed->exit_code;
  if (move && !executed->applied())
    return k_exit_ok; // nothing to take over
  const auto found = verify(context, look.actual, look.composed, address, move);
  if (!found)
    return fail(found.error());
  context.report(*found);
  context.envelope.fields["verified"] = !has_errors(*found);
  if (!has_errors(*found)) {
    if (move)
      context.console.message("verified: etab is what it was before");
    else if (!look.composed.exports.empty())
      context.console.message(look.actual.server.version3
                                  ? "verified in etab and over the network"
                                  : "verified in etab (a server for version 4 only lists nothing over the network)");
    return k_exit_ok;
  }
  if (!executed->applied() || executed->report->journal_id.empty())
    return fail(ErrorCode::failed, "the exports are not as sharefs.yaml has them", "see the errors above");
  if (auto undone = roll_back(context, executed->report->journal_id, "the exports are not as wanted"); !undone)
    return fail(undone.error());
  context.envelope.fields["rolled_back"] = true;
  return fail(ErrorCode::failed, "the exports were not as wanted, and everything was taken back",
              "see the errors above");
}

Result<int> run_export(Context& context, const Arguments& arguments) {
  const auto config = context.config();
  if (!config)
    return fail(config.error());
  const auto files = exports::read_host_files(context.system.files());
  if (!files)
    return fail(files.error());
  const auto own = find_own_servers(context.system, **config);
  if (own.servers.empty() && !(arguments.flag("remove") && files->own))
    return fail(not_a_server(context.system, **config));
  const auto request = export_request(context, arguments, own, directories_of(*files));
  if (!request)
    return fail(request.error());
  if (auto root = require_root(context, "only root can export"); !root)
    return fail(root.error());
  return put_into_force(context, *request, (*config)->file, own.address, arguments.flag("take-over"));
}

} // namespace

extern const CommandSpec k_export_command{
    .name = "export",
    .summary = "Export directories of this host, and verify it",
    .description =
        "Puts this host's exports of sharefs.yaml into force: the directory and its access, "
        "/etc/exports.d/sharefs.exports, the portmapper and the NFS server if they do not run, and `exportfs -r`. "
        "Then compares what is really exported, by etab and over the network, and takes everything back if a client is "
        "missing or has other rights. A running server is never restarted, and nothing is installed. Refused are "
        "directories that users could exchange for others, and access to those of the system. /etc/exports is touched "
        "by --take-over only: its lines that sharefs.yaml says with the same rights move to sharefs' file and stay "
        "behind as comments, no effective export changes, and `sharefs undo` restores every byte.",
    .example = "sharefs export --all              # every export of this host\n"
               "sharefs export /mnt/share --dry-run\n"
               "sharefs export --remove share     # withdraw it; the directory stays\n"
               "sharefs export --take-over        # lines of /etc/exports move to sharefs' file",
    .effect = Effect::changes,
    .positional = {.name = "NAME", .help = "PATH, SERVER:PATH, or the last part of PATH", .min = 0, .max = 0},
    .options = {{.names = "--all", .help = "Every export of this host"},
                {.names = "--remove", .help = "Withdraw the exports instead; directories and files stay"},
                {.names = "--recursive", .help = "Give what lies below to the group of `access:`, too"},
                {.names = "--take-over", .help = "Move lines of other exports files that mean the same to sharefs'"},
                {.names = "--drop-adhoc",
                 .help = "Let the reload drop what stands in no exports file (`exportfs CLIENT:DIRECTORY`)"}},
    .run = run_export,
};

} // namespace sharefs::cli
