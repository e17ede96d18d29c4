#pragma once
// sharefs status --watch.
#include "cli/commands/mount_support.hpp"

#include <functional>

namespace sharefs::cli {

struct ScreenContent {
  std::string table;
  std::vector<mounts::MountState> states;
};

/// On a terminal what `content` gives, drawn anew every k_redraw until q or Ctrl-C; elsewhere a line for each mount,
/// and for each change of its state, until a signal ends it.
Result<int> run_status_screen(Context& context, const std::function<Result<ScreenContent>()>& content);

} // namespace sharefs::cli
