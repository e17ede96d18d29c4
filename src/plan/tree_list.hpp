#pragma once
// Private to plan: what SetTreeAccess finds, decides and keeps. The list of what was there before is a file of root's
// own beside the journal, a line for each change, written and synced before the change is made.
#include "plan/acl.hpp"
#include "plan/private_directory.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::plan {

struct TreeRights {
  std::uint32_t gid = 0, mode = 0;
  std::string acl, default_acl; ///< as read_acl() has them
  friend bool operator==(const TreeRights&, const TreeRights&) = default;
};
/// What something below a directory of `gid` and `mode` should have: the group gets what the owner has, directories
/// also pass the group on, with a default ACL. For others nothing becomes wider.
TreeRights rights_for_group(const TreeRights& before, bool directory, std::uint32_t gid, std::uint32_t mode);

struct TreeChange {
  std::uint64_t inode = 0;
  TreeRights before, after;
  std::string path; ///< below the directory
  friend bool operator==(const TreeChange&, const TreeChange&) = default;
};
/// With its newline; bytes that could be taken for another field are escaped.
std::string line_of(const TreeChange& change);
std::optional<TreeChange> change_of(std::string_view line); ///< nullopt: cut off

/// What became of a tree. What is counted elsewhere than in `changed` was left as it was.
struct TreeCounts {
  static constexpr std::size_t k_most_named = 5;
  std::uint64_t changed = 0;
  std::uint64_t several_names = 0, programs = 0, mounts = 0, other = 0, since = 0, failed = 0;
  std::vector<std::string> named = {}; ///< the first few of those left
  std::string first_failure = {};
};
/// "300012 paths changed; left as they are: 2 files with several names ..."
std::string text_of(const TreeCounts& counts, bool reverse);

class TreeList {
 public:
  /// `path`: a directory of its own. `make`: to be appended to. Without, there may be none.
  static Result<TreeList> open(const sys::Files& files, const std::string& path, bool make);
  static Result<void> remove(const sys::Files& files, const std::string& path);

  [[nodiscard]] bool exists() const { return static_cast<bool>(m_file); }
  [[nodiscard]] Result<void> append(const std::string& lines) const;
  /// The last line first, as undo has to read it.
  [[nodiscard]] Result<void> for_each_backwards(const std::function<void(const TreeChange&)>& visit) const;

 private:
  sys::Fd m_file;
  std::string m_path;
};

} // namespace sharefs::plan
