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
