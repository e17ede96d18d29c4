#pragma once
// Progress of a copy on many nodes: the sum of what the nodes report (tree::Progress), and each node.
#include "cli/context.hpp"
#include "sys/process/child.hpp"
#include "tree/tree.hpp"

#include <map>

namespace sharefs::cli {

class FleetProgress {
 public:
  FleetProgress(Context& context, const std::string& what, std::size_t nodes)
      : m_context(context), m_what(what), m_line(context.console, what, nodes) {}
  void add_answer(const std::string& node, std::string_view state);
  /// Reads a line of a node's standard error; lines that are not progress reports are ignored.
  void add_line(const std::string& node, const std::string& line);

 private:
  Context& m_context;
  std::string m_what;
  ui::Progress m_line;
  sys::Deadline m_begin = sys::Clock::now();
  std::map<std::string, tree::Progress> m_nodes;
  std::chrono::seconds m_reported{0};
};

/// Returns "3.1/16.5 GiB, 42 s left; gpu07 12 %, gpu03 40 %": the sum, then the nodes that are not done, the slowest
/// first. Pure.
std::string text_of_nodes(const std::map<std::string, tree::Progress>& nodes, std::chrono::milliseconds took);

} // namespace sharefs::cli
