#include "sys/process/waiting_children.hpp"

#include <algorithm>

namespace sharefs::sys {
namespace {

constexpr std::size_t k_most = 2; ///< one child of root, and one of the user for whom a command works

void end_child(WorkingChild& child) {
  child.process().kill();
  static_cast<void>(child.finish());
}

} // namespace

Result<WorkingChild> WaitingChildren::take(const std::optional<User>& as, const std::function<void(int)>& work) {
  const auto found = is_ours() ? std::ranges::find(m_children, as, &Waiting::as) : m_children.end();
  if (found != m_children.end()) {
    WorkingChild child = std::move(found->child);
    m_children.erase(found);
    if (child.drain())
      return child;
    end_child(child); // the child has ended in the meantime
  }
  return WorkingChild::start(as, work);
}

void WaitingChildren::keep(const std::optional<User>& as, WorkingChild child) {
  if (!is_ours())
    return end_child(child);
  if (m_children.size() == k_most) {
    end_child(m_children.front().child);
    m_children.erase(m_children.begin());
  }
  m_children.push_back({as, std::move(child)});
}

void WaitingChildren::end() {
  if (is_ours())
    for (Waiting& waiting : m_children)
      end_child(waiting.child);
  m_children.clear();
}

} // namespace sharefs::sys
