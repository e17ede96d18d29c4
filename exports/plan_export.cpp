#include "exports/plan_export.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/system_directory.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::exports {

namespace {

constexpr const char* k_group = "export";
/// Long, because exportfs resolves every name twice and a name that does not exist may take seconds.
constexpr std::chrono::milliseconds k_exportfs_deadline{60'000};

void add_directory(const std::string& directory, const Request& request, const Actual& actual,
                   std::set<std::string>& made, plan::Plan& plan) {
  const auto found = actual.facts.directories.find(directory);
  if (found == actual.facts.directories.end())
    return;
  const auto& entry = found->second;
  if (!entry.exists())
    for (const auto& path : paths_below(entry.ancestor, entry.resolved))
      if (made.insert(path).second)
        plan.add(k_group, path == entry.resolved ? "a directory to export" : "above a directory to export",
                 plan::make_directory(path, 0755, std::nullopt, true));
  const auto wanted = request.access.find(directory);
  if (wanted == request.access.end() || wanted->second.kind == plan::DirectoryAccess::Kind::keep)
    return;
  const auto known = actual.access.find(directory);
  const auto before = known == actual.access.end() ? plan::Access{0, 0, 0755, ""} : known->second;
  const auto after = plan::access_after(wanted->second, before);
  if (known != actual.access.end() && before == after)
    return;
  plan::SetAccess change{entry.resolved, std::nullopt, after};
  if (known != actual.access.end())
    change = {entry.resolved, before, after, std::nullopt, {entry.device, entry.inode}};
  plan::add_access(plan, k_group, directory, wanted->second, std::move(change));
}

void add_own_file(const Actual& actual, const std::string& after, plan::Plan& plan) {
  const auto& before = actual.files.own;
  if (before.value_or("") == after && before.has_value() == !after.empty())
    return;
  if (after.empty()) {
    plan.add(k_group, "nothing is exported by sharefs any more", plan::remove_file(k_own_file, *before));
    return;
  }
  if (!actual.files.directory)
    plan.add(k_group, "where exportfs looks for further exports", plan::make_directory(k_exports_directory));
  plan.add(k_group, "the exports of sharefs.yaml", plan::File{k_own_file, before, after, 0644});
}

/// Adds `exportfs -r`, and notes on its other effects: it also puts changes by the administrator into force, and drops
/// exports that stand in no file.
void add_reload(const Actual& actual, const Request& request, const Composed& composed,
                const std::vector<const Export*>& changed_by_hand, plan::Plan& plan) {
  // The exit code is 1 also for faults in files of others; etab is verified afterwards.
  plan.add(
      k_group, "put the exports into force",
      plan::RunTool{
          .argv = {"exportfs", "-r"}, .undo = {}, .harmless = true, .accept = {0, 1}, .deadline = k_exportfs_deadline});
  std::vector<std::string> pending;
  for (const auto* entry : changed_by_hand)
    pending.push_back(fmt::format("{} to {} ({})", entry->directory, entry->client, entry->origin.text()));
  if (!pending.empty() && actual.server.running())
    plan.notes.push_back("the reload also puts into force what was changed by hand: " + join(pending, ", "));
  if (actual.server.running()) {
    std::map<std::string, std::vector<std::string>> withdrawn; // clients by directory
    for (const auto& entry : composed.retired)
      withdrawn[entry.directory].push_back(entry.client);
    for (const auto& [directory, clients] : withdrawn)
      plan.notes.push_back(
          fmt::format("{} is withdrawn from {}: where it is still mounted, programs get errors (`Stale file handle`)",
                      directory, join(clients, ", ")));
  }
  if (request.drop_adhoc)
    for (const auto& entry : composed.adhoc)
      plan.notes.push_back(fmt::format("{} to {} ({}) stands in no file: the reload drops it, and undo does not bring "
                                       "it back",
                                       entry.directory, entry.client, summary(entry.settings)));
}

} // namespace

std::optional<plan::SetTreeAccess> tree_access(const Actual& actual, const std::string& directory,
                                               const plan::DirectoryAccess& access) {
  const auto found = actual.facts.directories.find(directory);
  if (access.kind != plan::DirectoryAccess::Kind::group || found == actual.facts.directories.end() ||
      found->second.kind != sys::EntryKind::directory)
    return std::nullopt;
  const auto& entry = found->second;
  return plan::SetTreeAccess{entry.resolved, access.group, access.gid, access.mode, entry.device, entry.inode};
}

Diagnoses diagnose_access(const Actual& actual, const Request& request) {
  Diagnoses diagnoses;
  std::set<std::string_view> seen;
  for (const auto& entry : request.exports) {
    const auto wanted = request.access.find(entry.directory);
    if (wanted == request.access.end() || !seen.insert(entry.directory).second ||
        wanted->second.kind == plan::DirectoryAccess::Kind::keep)
      continue;
    if (const auto why = system_directory_reason(real_path(entry.directory, actual.facts)); !why.empty())
      diagnoses.push_back(at(Severity::error, "SF139", entry.line,
                             fmt::format("the access of `{}` is not changed, since {}", entry.directory, why),
                             "export a directory of its own, as /srv/share, or write `access: keep`"));
  }
  return diagnoses;
}

Diagnoses diagnose_adhoc(const Request& request, const Composed& composed, const plan::Plan& plan) {
  const bool reloads = std::ranges::any_of(plan.steps, [](const plan::Step& step) {
    const auto* tool = std::get_if<plan::RunTool>(&step.action);
    return tool != nullptr && tool->argv == Argv{"exportfs", "-r"};
  });
  Diagnoses found;
  if (reloads && !request.drop_adhoc)
    for (const auto& entry : composed.adhoc)
      found.push_back(at(Severity::error, "SF154", entry.origin,
                         fmt::format("{} is exported to `{}` ({}) and stands in no file: `exportfs -r` would drop it",
                                     entry.directory, entry.client, summary(entry.settings)),
                         "write it to sharefs.yaml or to a file in /etc/exports.d, or add --drop-adhoc"));
  return found;
}

plan::Plan plan_export(const Actual& actual, const Request& request, const Composed& composed) {
  plan::Plan plan;
  std::set<std::string> directories;
  std::set<std::string> made;
  for (const auto& entry : request.exports)
    if (directories.insert(entry.directory).second)
      add_directory(entry.directory, request, actual, made, plan);
  const auto steps = plan.steps.size();
  add_own_file(actual, own_file_text(composed.exports), plan);
  const bool file_changes = plan.steps.size() != steps;
  if (file_changes)
    plan.notes.insert(plan.notes.end(), composed.notes.begin(), composed.notes.end());

  std::set<Origin> own;
  for (const auto& entry : composed.exports)
    own.insert(entry.origin);
  const ExportIndex etab(actual.facts, actual.etab);
  bool own_in_force = composed.retired.empty() && !(request.drop_adhoc && !composed.adhoc.empty());
  std::vector<const Export*> changed_by_hand;
  for (const auto& entry : composed.expected.entries) {
    const auto there = etab.find(entry.directory, entry.client);
    if (there && actual.etab[*there].settings == entry.settings)
      continue;
    if (own.contains(entry.origin))
      own_in_force = false;
    else
      changed_by_hand.push_back(&entry);
  }
  const bool serves = !request.exports.empty();
  const bool starts = serves && !actual.server.running() && actual.server.visible;
  // The file is written first: if another run has changed it meanwhile, the plan stops there, before anything is
  // withdrawn. A run that is killed after that step leaves entries in etab, which are in `retired` in the next run.
  if (file_changes || starts || !own_in_force)
    add_reload(actual, request, composed, changed_by_hand, plan);
  if (serves)
    add_server_steps(actual.server, k_group, plan);
  for (const auto& tree : actual.trees) { // these steps come last, because they may take long
    plan.notes.push_back(
        fmt::format("{}: all that lies below becomes the group's, private files too; `sharefs undo` does "
                    "not give it back",
                    tree.path));
    plan.add(k_group, fmt::format("members of `{}` share what is there", tree.group), tree);
  }
  return plan;
}

} // namespace sharefs::exports
