#pragma once
// What a copy, or a look at a whole environment, says of itself while it is under way.
#include "cli/context.hpp"
#include "tree/tree.hpp"

namespace sharefs::cli {

/// For people one line, which goes with this object; with --json one line of JSON a second on stderr: {"progress":
/// "copying /x", "files", "bytes", "total_files", "total_bytes" (0: not known), "seconds",
/// "waiting" (null: not known)}.
class TreeProgress {
 public:
  TreeProgress(Context& context, std::string what);
  /// To be called no longer than this object lives.
  tree::OnProgress on();

 private:
  [[nodiscard]] std::string line(const std::string& numbers) const;

  Context& m_context;
  std::string m_what;
  ui::Console::Progress m_line;
  std::chrono::seconds m_said{0};
};

} // namespace sharefs::cli
