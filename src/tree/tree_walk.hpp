#pragma once
// Private to tree: walks through a tree by the threads of a job. No link is followed, and no mount in the tree is
// entered.
#include "tree/job.hpp"

namespace sharefs::tree {

class TreeWalk {
 public:
  /// The functions that are called during the walk. Several threads call them, but only one at a time for a directory.
  struct Visitor {
    /// Called after a directory was opened and before its names are read; not for the tree itself.
    std::function<void(Node& directory)> entered = {};
    /// Called for each name in a directory that is not a directory.
    std::function<void(const std::shared_ptr<Node>& directory, const Name& name)> entry;
    /// Called after all entries of a directory are done.
    std::function<void(Node& directory)> left = {};
    /// Called with errno if a directory could not be opened (it has no `fd`) or listed. If it returns false, `left` is
    /// not called for the directories above it. Without this function the error is a failure of the job.
    std::function<bool(int error, Node& directory)> failed = {};
    /// Opens `name` in a directory; open_below() by default.
    std::function<sys::Fd(const Node& parent, const std::string& name)> open = {};
  };
  /// `path`: the path of the tree in messages.
  TreeWalk(Job& job, const std::string& path, Visitor visitor)
      : m_job(job), m_path(path), m_visitor(std::move(visitor)) {}

  [[nodiscard]] Result<void> run(sys::Fd tree);
  /// Adds a directory to the walk. A visitor calls it if another kind of entry was replaced by a directory.
  void add_directory(const std::shared_ptr<Node>& parent, const std::string& name);

 private:
  void enter(const std::shared_ptr<Node>& parent, const std::string& name);
  void list(std::shared_ptr<Node> node);
  void leave(std::shared_ptr<Node> node);
  bool failed(int error, Node& node);

  Job& m_job;
  const std::string& m_path;
  Visitor m_visitor;
};

} // namespace sharefs::tree
