#include "cachefix/facts.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

constexpr std::chrono::milliseconds k_deadline{1500}; // for each answer of a share
constexpr std::size_t k_start = 256, k_text = 1U << 20U;

sys::EntryQuery query_of(const std::string& path, PathFact what) {
  sys::EntryQuery query{.path = path, .follow = true};
  query.access = query.locks = what == PathFact::place;
  query.read_bytes = what == PathFact::start ? k_start : what == PathFact::text ? k_text : 0;
  query.list = query.automount = what == PathFact::names; // the program will go there too, so an automount does no harm
  return query;
}

} // namespace

bool Facts::any_shared() {
  if (!m_any_shared) {
    const auto mounts = m_system.mounts();
    if (!mounts)
      m_error = mounts.error();
    m_any_shared = mounts && std::ranges::any_of(mounts->entries(),
                                                 [](const sys::MountEntry& one) { return sys::is_shared(one); });
  }
  return *m_any_shared;
}

void Facts::find_all(const std::vector<std::string>& paths, PathFact what) {
  sys::EntryRequest request;
  request.deadline = k_deadline;
  for (const std::string& path : paths)
    if (m_known.try_emplace({what, path}).second)
      request.queries.push_back(query_of(path, what));
  if (request.queries.empty() || !any_shared())
    return;
  for (sys::Entry& entry : m_system.entries(request)) {
    const bool whole = entry.kind == sys::EntryKind::directory && entry.error_number == 0;
    if (what == PathFact::names && !whole && entry.kind != sys::EntryKind::missing)
      entry.kind = sys::EntryKind::unknown;
    if (what == PathFact::text && (entry.kind != sys::EntryKind::file || entry.size > k_text))
      entry.content.clear();
    const std::string path = entry.path;
    m_known[{what, path}] = std::move(entry);
  }
}

const sys::Entry& Facts::find(const std::string& path, PathFact what) {
  find_all({path}, what);
  return m_known.at({what, path});
}

const LocalRoot& Facts::local() {
  if (!m_local)
    m_local = m_find_local();
  return *m_local;
}

} // namespace sharefs::cachefix
