// check_trust: declared in config/load.hpp.
#include "base/argv.hpp"
#include "config/load.hpp"

#include <fmt/format.h>

namespace sharefs::config {

namespace {
constexpr unsigned k_group_write = 0020;
constexpr unsigned k_other_write = 0002;
} // namespace

Result<void> check_trust(const std::string& file, uid_t owner, unsigned mode, uid_t euid) {
  const bool as_root = euid == 0;
  const unsigned forbidden = as_root ? k_group_write | k_other_write : k_other_write;
  const bool wrong_owner = owner != 0 && owner != euid;
  const bool writable = (mode & forbidden) != 0;
  if (!wrong_owner && !writable)
    return {};

  const auto name = shell_quote(file);
  const auto chown = fmt::format("chown {} {}", as_root ? "root:root" : std::to_string(euid), name);
  const auto chmod = fmt::format("chmod {} {}", as_root ? "go-w" : "o-w", name);
  std::string cure = wrong_owner ? chown : chmod;
  if (wrong_owner && writable)
    cure += " && " + chmod;
  const auto reason = wrong_owner ? fmt::format("belongs to the user with id {}, who could make {} do anything", owner,
                                                as_root ? "root" : "you")
                                  : fmt::format("can be changed by others (mode {:04o})", mode & 07777U);
  return fail(ErrorCode::permission, fmt::format("{}: the configuration {}", file, reason),
              fmt::format("look at its content, then run `{}`", cure));
}

} // namespace sharefs::config
