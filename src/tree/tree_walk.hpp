#pragma once
// Private to tree: one way through a tree, by the threads of a job. No link is followed, and nothing that is mounted in
// the tree is entered.
#include "tree/job.hpp"

namespace sharefs::tree {

class TreeWalk {
 public:
  /// What is done on the way. In threads; a directory is in one of them at a time.
  struct Visitor {
    /// A directory was opened, and its names come next. Not of the tree itself.
    std::function<void(Node& directory)> entered = {};
    /// The names in a directory that are no directories.
    std::function<void(const std::shared_ptr<Node>& directory, std::vector<Name> names)> names;
    /// All that lies in a directory is done.
    std::function<void(Node& directory)> left = {};
    /// A directory could not be opened (it has no `fd`) or listed: errno. False: the directories that it lies in are
    /// not `left`. Without this function it is a failure of the job.
    std::function<bool(int error, Node& directory)> failed = {};
    /// Opens `name` in a directory; as open_below().
    std::function<sys::Fd(const Node& parent, const std::string& name)> open = {};
  };
  /// `path` of the tree is for messages.
  TreeWalk(Job& job, const std::string& path, Visitor visitor)
      : m_job(job), m_path(path), m_visitor(std::move(visitor)) {}

  [[nodiscard]] Result<void> run(sys::Fd tree);
  /// From a visitor: a name that was none of a directory is one now.
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
