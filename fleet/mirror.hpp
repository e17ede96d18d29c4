#pragma once
// Directories that nodes without a shared disk have on their own: rsync brings them there over ssh, from this machine
// to each node, and says what a node has otherwise than this machine.
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
  bool removes = false;                  ///< what is not here goes there
  bool by_content = false;               ///< files are compared by their content, not by size and time
  std::vector<std::string> exclude = {}; ///< patterns of rsync(1)
};

/// How rsync and ssh come to a node.
struct Way {
  std::string node;
  std::string rsh;       ///< the command line of ssh up to the name of the node, as rsync -e reads it
  std::string path = {}; ///< path_for_engines(): where ssh is found
};

/// What a node has otherwise than this machine, by `rsync --out-format=%i %l`.
struct Difference {
  std::size_t missing = 0, changed = 0, attributes = 0, extra = 0; ///< extra: there, and not here
  std::size_t missing_files = 0;                                   ///< of those missing, without directories
  std::uint64_t missing_bytes = 0, changed_bytes = 0;
  std::uint64_t largest_changed = 0;

  [[nodiscard]] bool empty() const { return missing + changed + attributes + extra == 0; }
  /// The bytes that are needed there: of new files with the rest of their last block, and of a second copy of the
  /// largest changed one, which is replaced when it is complete.
  [[nodiscard]] std::uint64_t room_needed() const;
  /// "120 new (79M), 2 changed (1M), 3 to delete": two of the words are the caller's.
  [[nodiscard]] std::string text(std::string_view missing_word, std::string_view extra_word) const;
};
Difference parse_difference(std::string_view listed);

/// All that lies here, by rsync's own list, so that the patterns mean the same. Errors: `not_found` without rsync here,
/// `failed` with rsync's words, `interrupted`.
Result<Difference> measure(sys::System& system, const Mirror& mirror);

/// What a node says about a directory before rsync begins.
struct There {
  std::optional<std::uint64_t> room; ///< bytes that are free where it lies
  std::string file_system;           ///< the same for directories that share the room
  bool is_missing = false;           ///< there is no such directory
};
There parse_there(std::string_view errors);

enum class Work {
  look,    ///< says what a push would do
  push,    ///< does it
  compare, ///< says also what is there and not here
};
/// The words of rsync for a node, and those that a person is shown.
Argv rsync_words(const Mirror& mirror, Work work, const Way& way);
Argv rsync_shown(const Mirror& mirror);

struct Compared {
  std::optional<Outcome> trouble; ///< a node that was not reached, or cannot do it
  Difference difference;
  There there;
};
/// Errors: `not_found` without rsync here, `interrupted`.
Result<Compared> run_rsync(sys::System& system, const Mirror& mirror, Work work, const Way& way);

} // namespace sharefs::fleet
