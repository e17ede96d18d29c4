#include "tree/tree_walk.hpp"

#include "base/path.hpp"

#include <cerrno>

namespace sharefs::tree {

Result<void> TreeWalk::run(sys::Fd tree) {
  auto top = std::make_shared<Node>();
  top->fd = std::move(tree);
  m_job.workers.add([this, node = std::move(top)]() mutable { list(std::move(node)); });
  m_job.work();
  return m_job.result();
}

void TreeWalk::add_directory(const std::shared_ptr<Node>& parent, const std::string& name) {
  ++parent->open;
  m_job.workers.add([this, parent, name] { enter(parent, name); });
}

void TreeWalk::enter(const std::shared_ptr<Node>& parent, const std::string& name) {
  auto node = std::make_shared<Node>();
  node->parent = parent;
  node->path = parent->below(name);
  node->name = name;
  node->depth = parent->depth + 1;
  node->fd = m_visitor.open ? m_visitor.open(*parent, name) : open_below(parent->fd.get(), name.c_str());
  int error = node->fd ? 0 : errno;
  if (node->depth >= k_deepest) {
    error = ENAMETOOLONG;
    node->fd.reset();
  }
  if (error != 0) {
    if (failed(error, *node))
      leave(parent);
    return;
  }
  if (m_visitor.entered)
    m_visitor.entered(*node);
  list(std::move(node));
}

void TreeWalk::list(std::shared_ptr<Node> node) {
  std::vector<Name> names;
  if (const int error = read_names(node->fd.get(), names); error != 0 && !failed(error, *node))
    return;
  for (const auto& name : names)
    if (name.type == DT_DIR)
      add_directory(node, name.name);
  for (const auto& name : names)
    if (name.type != DT_DIR)
      m_visitor.entry(node, name);
  leave(std::move(node));
}

void TreeWalk::leave(std::shared_ptr<Node> node) {
  while (node && --node->open == 0) {
    if (m_visitor.left)
      m_visitor.left(*node);
    node = node->parent; // the descriptor is closed when the last task releases the node
  }
}

bool TreeWalk::failed(int error, Node& node) {
  if (m_visitor.failed)
    return m_visitor.failed(error, node);
  m_job.failed(error, join_path(m_path, node.path));
  return true;
}

} // namespace sharefs::tree
