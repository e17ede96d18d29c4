#include "conda/repair.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "conda/change.hpp"
#include "conda/share.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

Result<void> fill(sys::System& system, const RepairRequest& request, NewGeneration& making, const plan::Say& say) {
  const auto& seen = request.seen;
  const auto& environment = making.environment;
  std::set<std::string> closed;
  for (const auto& found : seen.found)
    if (found.kind == Kind::closed)
      closed.insert(found.path);
  tree::Options options;
  options.link_files = true;
  options.total_files = seen.files;
  options.total_bytes = seen.bytes;
  options.copy_instead = [&](const std::string& path, const struct stat& /*status*/) -> Result<bool> {
    return path.starts_with("conda-meta/") || closed.contains(path); // hard links would share the mode of the old file
  };
  const auto& root = system.files().root();
  const tree::Place before{
      .path = environment.path(environment.current), .root = root, .device = seen.device, .inode = seen.inode};
  auto& made = making.tree;
  made = {.path = making.path(), .root = root};
  TRY_ASSIGN(const auto linked, tree::copy(before, made, options, say.progress("linking " + before.path)));
  made.device = linked.device;
  made.inode = linked.inode;
  // Directories become writable, since files in them are replaced.
  TRY(tree::set_modes(made, {}, {.admit = admit_opened(seen, tree::Modes{}.mode)}));
  const CopyToRepair copy{.tree = made,
                          .prefix = environment.path(),
                          .from = seen.decision.replace,
                          .runs_programs = true,
                          .in_part = true};
  TRY(repair_copy(system, copy, say));
  const auto& record = environment.find(environment.current)->record;
  const auto store = system.entry({.path = environment.store, .follow = true});
  TRY(close_tree(made, store, request.settings.protect, &seen));
  making.sound = !has_errors(diagnose_unrepaired(seen, true));
  making.record.files = seen.files;
  making.record.bytes = seen.bytes;
  making.record.own_bytes = linked.bytes;
  making.record.no_guard = record && record->no_guard;
  return {};
}

} // namespace

plan::Plan plan_repaired_generation(const RepairRequest& request, const std::string& hidden) {
  const auto& [environment, seen, settings] = request;
  const auto repairs = plan_repair(seen, true, false);
  const auto closed = seen.count(Kind::closed);
  if (repairs.empty() && closed == 0)
    return {};
  const auto number = environment.next();
  auto plan = plan_switch(environment, number, hidden);
  plan.notes = repairs.notes;
  std::vector<std::string> repaired;
  const auto add = [&](std::size_t count, std::string_view noun, std::string_view how) {
    if (count > 0)
      repaired.push_back(fmt::format("{} {}", count_of(count, noun), how));
  };
  add(seen.contents.size() + seen.links.size(), "file", "with the right prefix or checksum");
  add(seen.compiled.size(), "file", "compiled again");
  add(closed, "path", "opened to those who may enter the environment");
  plan.notes.push_back(fmt::format("generation {} is made first, with {}; its other files are those of generation {}",
                                   number, join(repaired, ", "), environment.current));
  return plan;
}

Result<NewGeneration> make_repaired_generation(sys::System& system, const RepairRequest& request,
                                               const std::string& hidden, const plan::Say& say) {
  GenerationRequest making;
  making.environment = request.environment;
  making.settings = request.settings;
  making.record.command = shell_join({"sharefs", "conda", "verify", request.environment.name, "--repair"});
  making.hidden = hidden;
  making.fill = [&](NewGeneration& made) { return fill(system, request, made, say); };
  return make_generation(system, making, say);
}

} // namespace sharefs::conda
