#include "conda/scratch.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "conda/image.hpp"
#include "sys/process/interrupt.hpp"
#include "tree/tree.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

constexpr std::string_view k_scratch = "sharefs-update-";

void remove(const tree::Place& place, const plan::Say& say) {
  if (auto gone = tree::remove(place, {}); !gone)
    say.warning("left behind: " + gone.error().message, "remove " + place.path);
}

void remove_entry(sys::System& system, const sys::Entry& entry, const plan::Say& say) {
  remove({.path = entry.path, .root = system.files().root(), .device = entry.device, .inode = entry.inode}, say);
}

} // namespace

ScratchTree::~ScratchTree() {
  const sys::DelayInterrupts until_done;
  if (const auto entry = m_system.entry({.path = m_path, .links = sys::Links::none}); entry.exists())
    remove_entry(m_system, entry, m_say);
}

std::string scratch_name(sys::System& system, unsigned generation) {
  const auto self = system.identity();
  const Use use{self.hostname, self.pid, sys::process_start(system.files(), self.pid).value_or(0), generation};
  return fmt::format("{}{}.{}", k_scratch, random_letters(12), use_name(use));
}

void remove_old_scratch(sys::System& system, const std::string& directory, const plan::Say& say) {
  const auto self = system.identity();
  for (const auto& name : system.entry({.path = directory, .follow = true, .list = true}).names) {
    const auto use = name.starts_with(k_scratch) ? parse_use(name.substr(std::min(name.find('.'), name.size() - 1) + 1))
                                                 : std::nullopt;
    if (!use || use->host != self.hostname || is_running(system, *use) != false)
      continue;
    const auto entry = system.entry({.path = join_path(directory, name), .links = sys::Links::none});
    if (entry.kind == sys::EntryKind::directory && entry.uid == self.uid)
      remove_entry(system, entry, say);
  }
}

void remove_unfinished(sys::System& system, const SharedEnvironment& environment, const plan::Say& say) {
  for (const auto& name : environment.unfinished)
    if (name.starts_with("new-"))
      if (const auto entry = system.entry({.path = join_path(environment.root.path, name)});
          entry.kind == sys::EntryKind::directory) {
        say.message("removing " + entry.path + ", left by one that was cut off");
        remove_entry(system, entry, say);
      }
  for (const auto& entry : left_images(system, environment))
    remove_entry(system, entry, say);
  for (const auto& name : environment.root.names) { // a record is written before its generation gets its name
    const auto number = name.ends_with(".json") ? used_number(name) : std::nullopt;
    if (!number || name != generation_name(*number) + ".json" || environment.find(*number) != nullptr)
      continue;
    const auto path = join_path(environment.root.path, name);
    if (auto gone = system.files().remove(path); !gone)
      say.warning("left behind: " + gone.error().message, "remove " + path);
  }
}

} // namespace sharefs::conda
