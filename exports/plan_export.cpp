#include "exports/plan_export.hpp"

#include "base/text.hpp"
#include "exports/settings.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

constexpr const char* k_group = "export";
/// exportfs looks every name up twice, and a resolver takes its time for one that is not there.
constexpr std::chrono::milliseconds k_exportfs_deadline{60'000};

plan::RunTool exportfs(Argv arguments) {
  plan::RunTool tool;
  tool.argv = std::move(arguments);
  tool.argv.insert(tool.argv.begin(), "exportfs");
  tool.harmless = true;
  tool.accept = {0, 1}; // 1 also for faults in files that are not ours; etab is what counts, and is verified
  tool.deadline = k_exportfs_deadline;
  return tool;
}

/// CLIENT:DIRECTORY as exportfs takes it on its command line.
std::string export_name(const EtabEntry& entry) {
  const bool v6 = entry.client.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", entry.client, v6 ? "]" : "", entry.directory);
}

/// u::rwx, and group and others as the mode has them: files made below are as open as the directory, whatever the
/// umask.
std::string default_acl(std::uint32_t mode) {
  const auto three = [](std::uint32_t bits) {
    return fmt::format("{}{}{}", (bits & 4U) != 0 ? 'r' : '-', (bits & 2U) != 0 ? 'w' : '-',
                       (bits & 1U) != 0 ? 'x' : '-');
  };
  return fmt::format("u::{},g::{},o::{}", three(mode >> 6U), three(mode >> 3U), three(mode));
}

plan::Access access_after(const DirectoryAccess& wanted, const plan::Access& before) {
  plan::Access after = before;
  if (wanted.kind == DirectoryAccess::Kind::open)
    after.mode = 0777;
  if (wanted.kind == DirectoryAccess::Kind::group) {
    after.gid = wanted.gid;
    after.mode = wanted.mode;
    after.default_acl = default_acl(wanted.mode);
  }
  return after;
}

void add_directory(const Desired& desired, const Actual& actual, plan::Plan& plan) {
  const auto found = actual.directories.find(desired.directory);
  if (found == actual.directories.end())
    return;
  const auto& state = found->second;
  for (const auto& path : state.missing) {
    const bool planned = std::any_of(plan.steps.begin(), plan.steps.end(), [&](const plan::Step& step) {
      const auto* const made = std::get_if<plan::MakeDirectory>(&step.action);
      return made != nullptr && made->path == path;
    });
    if (!planned)
      plan.add(k_group, "a directory to export", plan::MakeDirectory{path, 0755, std::nullopt});
  }
  using Kind = DirectoryAccess::Kind;
  if (desired.access.kind == Kind::keep)
    return;
  const auto before = state.access.value_or(plan::Access{0, 0, 0755, ""});
  const auto after = access_after(desired.access, before);
  if (state.access && before == after)
    return;
  plan.add(k_group,
           desired.access.kind == Kind::open ? "everyone may use it, as in the manual recipe"
                                             : fmt::format("members of `{}` share it", desired.access.group),
           plan::SetAccess{real_path(desired.directory, actual.facts), state.access, after});
}

void add_own_file(const Actual& actual, const std::string& after, plan::Plan& plan) {
  const auto& before = actual.files.own;
  if (before.value_or("") == after && before.has_value() == !after.empty())
    return;
  if (after.empty()) {
    plan.add(k_group, "nothing is exported by sharefs any more", plan::RemoveFile{k_own_file, *before, 0644});
    return;
  }
  if (!actual.files.directory)
    plan.add(k_group, "where exportfs looks for further exports",
             plan::MakeDirectory{k_exports_directory, 0755, std::nullopt});
  plan.add(k_group, "the exports of sharefs.yaml", plan::WriteFile{k_own_file, before, after, 0644});
}

bool same_entry(const EtabEntry& a, const EtabEntry& b, const HostFacts& facts) {
  return a.directory == b.directory && same_client(a.client, b.client, facts);
}

const EtabEntry* find_entry(const std::vector<EtabEntry>& entries, const EtabEntry& wanted, const HostFacts& facts) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const EtabEntry& entry) { return same_entry(entry, wanted, facts); });
  return found == entries.end() ? nullptr : &*found;
}

/// Is each entry that own file gives in etab, with these settings?
bool in_force(const ExpectedEtab& expected, const std::vector<Export>& own, const Actual& actual) {
  return std::all_of(expected.entries.begin(), expected.entries.end(), [&](const EtabEntry& entry) {
    const bool ours = std::any_of(own.begin(), own.end(), [&](const Export& line) {
      return std::any_of(line.clients.begin(), line.clients.end(),
                         [&](const Client& client) { return client.origin == entry.origin; });
    });
    const auto* const there = find_entry(actual.etab, entry, actual.facts);
    return !ours || (there != nullptr && there->settings == entry.settings);
  });
}

/// What else `exportfs -r` does: it takes up what the administrator has changed, and drops what stands in no file. The
/// latter is exported again at once.
void add_reload(const Actual& actual, const Composed& composed, const ExpectedEtab& expected, plan::Plan& plan) {
  plan.add(k_group, "put the exports into force", exportfs({"-r"}));
  std::vector<std::string> pending;
  const auto of_own = [&](const Origin& origin) {
    return std::any_of(composed.exports.begin(), composed.exports.end(), [&](const Export& line) {
      return std::any_of(line.clients.begin(), line.clients.end(),
                         [&](const Client& client) { return client.origin == origin; });
    });
  };
  for (const auto& entry : expected.entries) {
    const auto* const there = find_entry(actual.etab, entry, actual.facts);
    if (!of_own(entry.origin) && actual.server.running() && (there == nullptr || there->settings != entry.settings))
      pending.push_back(fmt::format("{} to {} ({})", entry.directory, entry.client, entry.origin.text()));
  }
  if (!pending.empty())
    plan.notes.push_back("the reload also puts into force what was changed by hand: " + join(pending, ", "));
  for (const auto& entry : actual.etab) {
    if (find_entry(expected.entries, entry, actual.facts) != nullptr ||
        find_entry(composed.retired, entry, actual.facts) != nullptr)
      continue;
    plan.notes.push_back(fmt::format("{} to {} stands in no file (`exportfs -o`): the reload drops it for a moment",
                                     entry.directory, entry.client));
    plan.add(k_group, "exported by hand, not by a file: stays",
             exportfs({"-i", "-o", join(entry.options, ","), export_name(entry)}));
  }
}

} // namespace

plan::Plan plan_export(const Actual& actual, const Request& request, const Composed& composed) {
  plan::Plan plan;
  for (const auto& desired : request.exports)
    add_directory(desired, actual, plan);
  if (!composed.retired.empty()) {
    // Before the file: a run that is cut off between the two still finds the file to correct.
    plan::RunTool withdraw = exportfs({"-u"});
    withdraw.harmless = false;
    withdraw.undo = {"exportfs", "-r"};
    for (const auto& entry : composed.retired)
      withdraw.argv.push_back(export_name(entry));
    plan.add(k_group, "no longer exported", withdraw);
  }
  const auto text = own_file_text(composed.exports);
  const auto steps = plan.steps.size();
  add_own_file(actual, text, plan);
  const bool file_changes = plan.steps.size() != steps;
  if (file_changes)
    plan.notes = composed.notes;
  const auto expected = expected_etab(files_after(actual, composed), actual.facts);
  const bool starts = !request.exports.empty() && !actual.server.running() && actual.server.visible;
  if (file_changes || starts || !in_force(expected, composed.exports, actual))
    add_reload(actual, composed, expected, plan);
  if (!request.exports.empty())
    add_server_steps(actual.server, k_group, plan);
  return plan;
}

} // namespace sharefs::exports
