#include "cachefix/facts.hpp"

#include <algorithm>
#include <cerrno>

namespace sharefs::cachefix {
namespace {

constexpr std::chrono::milliseconds k_deadline{1500}; // for one answer of a share
constexpr std::size_t k_start = 256;

} // namespace

bool Facts::any_shared() {
  if (!m_any_shared)
    m_any_shared = m_answers.any_shared();
  return *m_any_shared;
}

void Facts::expect(const std::vector<std::string>& paths) {
  std::vector<std::string> unknown;
  for (const std::string& path : paths)
    if (m_places.try_emplace(path).second)
      unknown.push_back(path);
  if (unknown.empty() || !any_shared())
    return;
  for (sys::Entry& entry : m_answers.entries(unknown, {.path = {}, .access = true})) {
    const std::string path = entry.path;
    m_places[path] = std::move(entry);
  }
}

const sys::Entry& Facts::place(const std::string& path) {
  expect({path});
  return m_places.at(path);
}

const std::optional<std::string>& Facts::text(const std::string& path) {
  const auto [known, fresh] = m_texts.try_emplace(path);
  if (fresh) {
    sys::Entry entry = std::move(m_answers.entries({path}, {.path = {}, .read_bytes = k_text}).front());
    if (entry.kind == sys::EntryKind::file && entry.error_number == 0 && entry.size <= k_text)
      known->second = std::move(entry.content);
  }
  return known->second;
}

const std::string& Facts::start(const std::string& path) {
  const auto [known, fresh] = m_starts.try_emplace(path);
  if (fresh)
    known->second = std::move(m_answers.entries({path}, {.path = {}, .read_bytes = k_start}).front().content);
  return known->second;
}

const std::optional<Names>& Facts::names(const std::string& path) {
  const auto [known, fresh] = m_names.try_emplace(path);
  if (fresh) { // through an automount point: the program is about to go there
    sys::Entry entry = std::move(m_answers.entries({path}, {.path = {}, .list = true, .automount = true}).front());
    const bool whole = entry.kind == sys::EntryKind::directory && entry.error_number == 0;
    if (whole || entry.kind == sys::EntryKind::missing)
      known->second = std::move(entry.names);
    if (entry.error_number == EACCES)
      m_refused.insert(path);
  }
  return known->second;
}

const LocalRoot& Facts::local(Holds holds) {
  auto& known = m_local.at(static_cast<std::size_t>(holds));
  if (!known)
    known = m_answers.local(holds);
  return *known;
}

bool MachineAnswers::any_shared() {
  const auto mounts = m_system.mounts();
  if (!mounts)
    m_error = mounts.error();
  return mounts && std::any_of(mounts->entries().begin(), mounts->entries().end(),
                               [](const sys::MountEntry& mount) { return sys::is_shared(mount); });
}

std::vector<sys::Entry> MachineAnswers::entries(const std::vector<std::string>& paths, const sys::EntryQuery& what) {
  sys::EntryRequest request;
  request.deadline = k_deadline;
  for (const std::string& path : paths) {
    request.queries.push_back(what);
    request.queries.back().path = path;
    request.queries.back().follow = true;
  }
  return m_system.entries(request);
}

LocalRoot MachineAnswers::local(Holds holds) {
  return find_local_root(m_system, m_choice, m_system.identity(), holds);
}

} // namespace sharefs::cachefix
