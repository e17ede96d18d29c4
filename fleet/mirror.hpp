#pragma once
// Directories that nodes without a shared disk have on their own: rsync brings them there over ssh, from this machine
// to each node. A node keeps a mark of what it was brought last, which is written when all of it is there.
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

/// What lies here, by rsync's own list, so that the patterns mean the same.
struct Listing {
  std::string state; ///< a hash of path, names, sizes, times, modes and owners
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};
/// Errors: `not_found` without rsync here, `failed` with rsync's words, `interrupted`.
Result<Listing> list_mirror(sys::System& system, const Mirror& mirror);
Listing parse_listing(std::string_view path, std::string_view listed);

/// What a node has otherwise than this machine, by `rsync --out-format=%i %l`.
struct Difference {
  std::size_t missing = 0, changed = 0, attributes = 0, extra = 0; ///< extra: there, and not here
  std::uint64_t missing_bytes = 0, changed_bytes = 0;
  std::uint64_t largest_changed = 0;

  [[nodiscard]] bool empty() const { return missing + changed + attributes + extra == 0; }
  /// The bytes that are needed there: of new files with the rest of their last block, and of a second copy of the
  /// largest changed one, which is exchanged when it is complete.
  [[nodiscard]] std::uint64_t room_needed() const;
  /// "120 new (79M), 2 changed (1M), 3 to delete": two of the words are the caller's.
  [[nodiscard]] std::string text(std::string_view missing_word, std::string_view extra_word) const;
};
Difference parse_difference(std::string_view listed);

/// What a node had when it was brought the whole of it.
struct Mark {
  std::string state;
  std::int64_t at = 0; ///< seconds since 1970
  std::string from;    ///< name of the machine that it came from
};
std::string format(const Mark& mark);
std::optional<Mark> parse_mark(std::string_view text);

/// What a node says about a directory before rsync begins.
struct There {
  std::optional<std::uint64_t> room; ///< bytes that are free where it lies
  std::string file_system;           ///< the same for directories that share the room
  std::optional<Mark> mark;
  bool begun = false; ///< a push has begun, and has not ended
  bool gone = false;  ///< there is no such directory
};
There parse_there(std::string_view said, std::string_view name);

enum class Work {
  look,   ///< only says what it would do
  push,   ///< does it
  verify, ///< compares contents
};
/// The words of rsync for a node, and those that a person is shown.
Argv rsync_words(const Mirror& mirror, Work work, const Way& way);
Argv rsync_shown(const Mirror& mirror, Work work);

struct Compared {
  std::optional<Outcome> trouble; ///< a node that was not reached, or cannot do it
  Difference difference;
  There there;
};
/// Errors: `not_found` without rsync here, `interrupted`.
Result<Compared> run_rsync(sys::System& system, const Mirror& mirror, Work work, const Way& way);
/// Writes the mark, after all files of that file system are on the disk there.
Result<std::optional<Outcome>> write_mark(sys::System& system, const Mirror& mirror, const Mark& mark, const Way& way);
/// What the node says about these, in their order; or why it does not.
struct Marks {
  std::optional<Outcome> trouble;
  std::vector<There> there;
};
Result<Marks> read_marks(sys::System& system, const std::vector<Mirror>& mirrors, const Way& way);

} // namespace sharefs::fleet
