// sharefs export: this host's exports of sharefs.yaml are put into force, and it is looked whether they are.
#include "base/argv.hpp"
#include "base/text.hpp"
#include "cli/commands/export_support.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "exports/diagnose.hpp"
#include "exports/host.hpp"
#include "exports/verify.hpp"
#include "plan/journal.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace sharefs::cli {

namespace {

/// mountd needs a moment after its start until it is registered and answers.
constexpr int k_listing_attempts = 5;
constexpr std::chrono::milliseconds k_listing_pause{400};
constexpr std::chrono::milliseconds k_listing_timeout{3000};

Result<exports::Actual> gather(Context& context, exports::HostFiles files, const exports::Request& request) {
  const ui::Console::Progress progress(context.console, "looking at the exports");
  auto& system = context.system;
  exports::Actual actual;
  actual.files = std::move(files);
  auto etab = exports::read_etab(system.files());
  if (!etab)
    return fail(etab.error());
  actual.etab = std::move(*etab);

  // The desired clients are asked about together with those of the files.
  auto asked = actual.files.files;
  asked.emplace_back().exports = request.exports;
  auto facts = exports::probe_facts(system, asked, request.remove);
  if (!facts)
    return fail(facts.error());
  actual.facts = std::move(*facts);
  auto server = exports::probe_server(system);
  if (!server)
    return fail(server.error());
  actual.server = std::move(*server);
  return actual;
}

/// Only of directories that can be exported: others are not touched at all.
Result<void> gather_access(Context& context, const exports::Request& request, exports::Actual& actual) {
  for (const auto& [directory, wanted] : request.access) {
    const auto entry = actual.facts.directories.find(directory);
    if (entry == actual.facts.directories.end())
      continue;
    auto access = exports::probe_access(context.system, entry->second);
    if (!access)
      return fail(access.error());
    if (*access)
      actual.access.emplace(directory, **access);
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
      for (auto& diagnosis : exports::diagnose_entry(entry))
        found.push_back(std::move(diagnosis));
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
                         const std::string& address) {
  const ui::Console::Progress progress(context.console, "verifying");
  const auto etab = exports::read_etab(context.system.files());
  if (!etab)
    return fail(etab.error());
  auto found = exports::verify_etab(composed, actual, *etab);
  for (auto& diagnosis : exports::verify_foreign(composed, actual, *etab))
    found.push_back(std::move(diagnosis));
  if (has_errors(found) || composed.exports.empty())
    return found;
  for (auto& diagnosis : check_listing(context, composed, actual.facts, address))
    found.push_back(std::move(diagnosis));
  return found;
}

/// Take back what was applied. The consent for the export covers it.
Result<void> roll_back(Context& context, const std::string& journal_id) {
  const auto mounts = context.system.mounts();
  if (!mounts)
    return fail(mounts.error());
  const plan::Journal journal(context.system.files(), plan::state_directory(context.system.identity(), *mounts));
  const auto entry = journal.load(journal_id);
  if (!entry)
    return fail(entry.error());
  const auto entries = journal.list();
  auto flags = context.flags;
  flags.yes = true;
  Context undo(context.host, context.system, context.console, flags, context.argv);
  context.console.message("not as it should be: taking it back");
  const auto undone = execute(undo, plan::undo_plan(*entry, entries.value_or(std::vector<plan::JournalEntry>{})),
                              "nothing to take back");
  if (!undone)
    return fail(undone.error());
  if (undone->exit_code != k_exit_ok)
    return fail(ErrorCode::failed, "the exports are not as wanted, and not everything could be taken back",
                fmt::format("run `sharefs undo {}`", journal_id));
  return {};
}

Result<void> require_root(const Context& context) {
  if (context.flags.dry_run || context.flags.check || context.system.identity().uid == 0)
    return {};
  return fail(ErrorCode::permission, "only root can export", "run `sudo " + shell_join(context.argv) + "`");
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
    return count_of(request.exports.size(), "export") + ": nothing to do";
  return composed.exports.empty() ? "sharefs exports nothing here: nothing to do" : "nothing to do";
}

/// Show, apply, look whether it is so, and take it back if it is not.
Result<int> put_into_force(Context& context, const exports::Actual& actual, const exports::Request& request,
                           const exports::Composed& composed, const std::string& address) {
  const auto plan = exports::plan_export(actual, request, composed);
  const auto executed = execute(context, plan, nothing_to_do(request, composed));
  if (!executed)
    return fail(executed.error());
  if (executed->exit_code != k_exit_ok || (!executed->applied() && !plan.empty()))
    return executed->exit_code;
  const auto found = verify(context, actual, composed, address);
  if (!found)
    return fail(found.error());
  context.report(*found);
  context.envelope.fields["verified"] = !has_errors(*found);
  if (!has_errors(*found)) {
    if (!composed.exports.empty())
      context.console.message("verified in etab and over the network");
    return k_exit_ok;
  }
  if (!executed->applied() || executed->report->journal_id.empty())
    return fail(ErrorCode::failed, "the exports are not as sharefs.yaml has them", "see what is said above");
  if (auto undone = roll_back(context, executed->report->journal_id); !undone)
    return fail(undone.error());
  context.envelope.fields["rolled_back"] = true;
  return fail(ErrorCode::failed, "the exports were not as wanted, and everything was taken back",
              "see what is said above");
}

Result<int> run_export(Context& context, const Arguments& arguments) {
  const auto config = context.config();
  if (!config)
    return fail(config.error());
  auto files = exports::read_host_files(context.system.files());
  if (!files)
    return fail(files.error());
  const bool remove = arguments.flag("remove");
  const auto in_file = directories_of(*files);
  const auto own = find_own_servers(context.system, **config);
  if (own.servers.empty() && !(remove && files->own))
    return fail(not_a_server(context.system, **config));
  const auto request = export_request(context, arguments, own, in_file);
  if (!request)
    return fail(request.error());
  if (auto whole = check_own_file(*files, *request); !whole)
    return fail(whole.error());
  if (auto root = require_root(context); !root)
    return fail(root.error());
  auto actual = gather(context, std::move(*files), *request);
  if (!actual)
    return fail(actual.error());
  if (!request->exports.empty())
    if (auto installed = exports::check_installed(actual->server); !installed)
      return fail(installed.error());
  for (const auto& entry : request->exports)
    if (const auto place = actual->facts.directories.find(entry.directory);
        place != actual->facts.directories.end() && place->second.kind == sys::EntryKind::unknown)
      return fail(place->second.error());

  const auto composed = exports::compose(*actual, *request);
  context.envelope.fields["exports"] = to_json(composed.exports);
  const auto found = diagnose_desired(*actual, *request, composed, (*config)->file);
  context.report(found);
  if (has_errors(found))
    return fail(ErrorCode::failed, "the exports of sharefs.yaml cannot be put into force; nothing was changed",
                "correct what is said above");
  if (auto gathered = gather_access(context, *request, *actual); !gathered)
    return fail(gathered.error());
  return put_into_force(context, *actual, *request, composed, own.address);
}

} // namespace

extern const CommandSpec k_export_command{
    .name = "export",
    .summary = "Export directories of this host, and verify it",
    .description =
        "Puts this host's exports of sharefs.yaml into force: the directory and its access, "
        "/etc/exports.d/sharefs.exports, the portmapper and the NFS server if they do not run, and `exportfs -r`. "
        "Then compares what is really exported, by etab and over the network, and takes everything back if a client is "
        "missing or has other rights. /etc/exports is never touched, a running server never restarted, and nothing is "
        "installed.",
    .example = "sharefs export --all              # every export of this host\n"
               "sharefs export /mnt/share --dry-run\n"
               "sharefs export --remove share     # withdraw it; the directory stays",
    .effect = Effect::changes,
    .positional = {.name = "NAME", .help = "PATH, SERVER:PATH, or the last part of PATH", .min = 0, .max = 0},
    .options = {{.names = "--all", .help = "Every export of this host"},
                {.names = "--remove", .help = "Withdraw the exports instead; directories and files stay"}},
    .run = run_export,
};

} // namespace sharefs::cli
