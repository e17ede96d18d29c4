#pragma once
// Mirrors: directories that nodes without a shared disk keep on their own disks. rsync copies them over ssh from this
// machine to each node, and reports how a node differs from this machine.
#include "base/argv.hpp"
#include "fleet/outcome.hpp"
#include "sys/system.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

struct Mirror {
  std::string name;
  std::string path;                      ///< the same here and on the node
  bool removes = false;                  ///< delete files there that are not here
  bool by_content = false;               ///< files are compared by their content, not by size and time
  std::vector<std::string> exclude = {}; ///< patterns of rsync(1)
};

/// How rsync and ssh reach a node.
struct Way {
  std::string node;
  std::string rsh;       ///< the command line of ssh up to the name of the node, as rsync -e reads it
  std::string path = {}; ///< path_for_engines(): where ssh is found
};

/// How a node differs from this machine, from `rsync --out-format=%i %l`.
struct Difference {
  std::size_t missing = 0, changed = 0, attributes = 0, extra = 0; ///< extra: files there that are not here
  std::size_t missing_files = 0;                                   ///< the part of `missing` that is not directories
  std::uint64_t missing_bytes = 0, changed_bytes = 0;
  std::uint64_t largest_changed = 0;

  [[nodiscard]] bool empty() const { return missing + changed + attributes + extra == 0; }
  /// Returns the bytes that a push needs there: the new files, each with the rest of its last block, and a second copy
  /// of the largest changed file, which is replaced when the copy is complete.
  [[nodiscard]] std::uint64_t room_needed() const;
  /// Returns "120 new (79M), 2 changed (1M), 3 to delete"; the caller chooses the words for missing and extra files.
  [[nodiscard]] std::string text(std::string_view missing_word, std::string_view extra_word) const;
};
/// Counts the lines that rsync printed.
Difference parse_difference(std::string_view listed);

/// Lists all files here with rsync, so that the exclude patterns mean the same. Errors: `not_found` without rsync here,
/// `permission` for a link of another user, `failed` with rsync's message, `interrupted`.
Result<Difference> measure(sys::System& system, const Mirror& mirror);

/// What a node reports about a directory before rsync begins.
struct There {
  std::optional<std::uint64_t> room; ///< free bytes of its file system
  std::string file_system;           ///< equal for directories on the same file system
  bool is_missing = false;           ///< there is no such directory
};
/// Reads what the script on the node has reported on standard error.
There parse_there(std::string_view errors);

enum class Work {
  preview, ///< report what a push would do
  push,    ///< copy the files
  compare, ///< report also files there that are not here
};
/// rsync_words: the command for a node. rsync_shown: the command as a message shows it.
Argv rsync_words(const Mirror& mirror, Work work, const Way& way);
Argv rsync_shown(const Mirror& mirror);

struct Compared {
  std::optional<Outcome> problem; ///< set for a node that was not reached, or cannot run rsync
  Difference difference;
  There there;
};
/// Errors: `not_found` without rsync here, `conflict` if the directory is gone, `permission` if somebody else's link is
/// in its place, `interrupted`.
Result<Compared> run_rsync(sys::System& system, const Mirror& mirror, Work work, const Way& way);

} // namespace sharefs::fleet
