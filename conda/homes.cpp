#include "conda/homes.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>

namespace sharefs::conda {

std::vector<std::string> users_of(const std::vector<Homes>& homes) {
  std::vector<std::string> users;
  for (const auto& place : homes)
    users.insert(users.end(), place.users.begin(), place.users.end());
  return users;
}

HomeReader::HomeReader(sys::System& system, sys::MountTable mounts)
    : m_system(system), m_mounts(std::move(mounts)), m_as_root(system.identity().uid == 0) {}

std::vector<sys::Entry> HomeReader::find(const std::vector<std::string>& homes) {
  sys::EntryRequest request;
  for (const auto& home : homes)
    request.queries.push_back({.path = home, .follow = true, .links = sys::Links::trusted});
  auto entries = m_system.entries(request);
  note_hung(entries);
  return entries;
}

std::vector<sys::Entry> HomeReader::read(const sys::User& user, std::vector<sys::EntryQuery> queries) {
  std::vector<sys::Entry> entries(queries.size());
  std::vector<std::size_t> asked;
  sys::EntryRequest request;
  if (m_as_root)
    request.as = user;
  for (std::size_t index = 0; index < queries.size(); ++index) {
    const auto hung = m_hung.empty() ? m_hung.end() : m_hung.find(superblock_of(queries[index].path));
    if (hung == m_hung.end()) {
      asked.push_back(index);
      request.queries.push_back(std::move(queries[index]));
      continue;
    }
    entries[index].path = entries[index].resolved = queries[index].path;
    entries[index].error_number = ETIMEDOUT;
    entries[index].detail = "not asked: `" + hung->second + "` on the same file system did not answer";
  }
  if (asked.empty())
    return entries;
  auto answers = m_system.entries(request);
  note_hung(answers);
  for (std::size_t turn = 0; turn < asked.size(); ++turn)
    entries[asked[turn]] = std::move(answers[turn]);
  return entries;
}

HomeReader::Superblock HomeReader::superblock_of(const std::string& path) const {
  const auto* mount = m_mounts.owner_of(path);
  return mount == nullptr ? Superblock{} : Superblock{mount->major, mount->minor};
}

void HomeReader::note_hung(const std::vector<sys::Entry>& entries) {
  for (const auto& entry : entries)
    if (entry.hung() && sys::may_hang(entry.fs_type))
      m_hung.try_emplace(superblock_of(entry.resolved), entry.path);
}

bool is_denied(const sys::Entry& entry) {
  return entry.error_number == EACCES || entry.error_number == EPERM;
}

PermittedEntries read_as_permitted(sys::System& system, sys::EntryRequest request,
                                   const std::vector<std::string>& users) {
  constexpr std::size_t k_users_to_try = 16; // a limit, since each takes a process of its own
  PermittedEntries seen{system.entries(request)};
  if (std::ranges::none_of(seen.entries, is_denied) || system.identity().uid != 0)
    return seen;
  for (std::size_t index = 0; index < std::min(users.size(), k_users_to_try); ++index)
    if (auto user = system.user(users[index])) {
      request.as = *user;
      if (auto theirs = system.entries(request); std::ranges::none_of(theirs, is_denied))
        return {std::move(theirs), std::move(*user)};
    }
  return seen;
}

Result<sys::User> owner_of(sys::System& system, const sys::Entry& entry, std::string hint) {
  auto owner = system.user(std::to_string(entry.uid));
  return owner ? std::move(owner)
               : fail(ErrorCode::permission,
                      fmt::format("{} belongs to user {}, whom this host does not know", entry.path, entry.uid),
                      std::move(hint));
}

std::string reason_of(const sys::Entry& entry) {
  return entry.detail.empty() ? errno_text(entry.error_number) : entry.detail;
}

} // namespace sharefs::conda
