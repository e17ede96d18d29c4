#include "cli/commands/conda_scratch.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "conda/environment_store.hpp"
#include "sys/process/interrupt.hpp"
#include "tree/tree.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr std::string_view k_scratch = "sharefs-update-";

void remove_dead(Context& context, const sys::Entry& entry) {
  const tree::Place old{
      .path = entry.path, .root = context.system.files().root(), .device = entry.device, .inode = entry.inode};
  if (auto gone = tree::remove(old, tree::Options{}); !gone)
    context.console.warning("left behind: " + gone.error().message, "remove " + entry.path);
}

} // namespace

ScratchTree::~ScratchTree() {
  const sys::ClearingUp until_done;
  if (auto removed = tree::remove({.path = m_path, .root = m_context.system.files().root()}, {}); !removed)
    m_context.console.warning("left behind: " + removed.error().message, "remove " + m_path);
}

std::string scratch_name(Context& context, unsigned generation) {
  const auto self = context.system.identity();
  const conda::Use use{self.hostname, self.pid, sys::process_start(context.system, self.pid).value_or(0), generation};
  return fmt::format("{}{}.{}", k_scratch, random_letters(12), conda::use_name(use));
}

void remove_old_scratch(Context& context, const std::string& directory) {
  const auto self = context.system.identity();
  for (const auto& name : context.system.entry({.path = directory, .follow = true, .list = true}).names) {
    const auto use = name.starts_with(k_scratch)
                         ? conda::parse_use(name.substr(std::min(name.find('.'), name.size() - 1) + 1))
                         : std::nullopt;
    if (!use || use->host != self.hostname || conda::runs(context.system, *use) != false)
      continue;
    const auto entry = context.system.entry({.path = join_path(directory, name), .links = sys::Links::none});
    if (entry.kind != sys::EntryKind::directory || entry.uid != self.uid)
      continue;
    remove_dead(context, entry);
  }
}

void remove_unfinished(Context& context, const conda::SharedEnvironment& environment) {
  for (const auto& name : environment.unfinished)
    if (name.starts_with("new-"))
      if (const auto entry = context.system.entry({.path = join_path(environment.root.path, name)});
          entry.kind == sys::EntryKind::directory) {
        context.console.message("removing " + entry.path + ", left by one that was cut off");
        remove_dead(context, entry);
      }
  for (const auto& name : environment.root.names) { // a record is written before its generation has its name
    const auto number = name.ends_with(".json") ? conda::used_number(name) : std::nullopt;
    if (!number || name != conda::generation_name(*number) + ".json" || environment.find(*number) != nullptr)
      continue;
    const auto path = join_path(environment.root.path, name);
    if (auto gone = context.system.files().remove(path); !gone)
      context.console.warning("left behind: " + gone.error().message, "remove " + path);
  }
}

} // namespace sharefs::cli
