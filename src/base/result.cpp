#include "base/result.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>

namespace sharefs {

namespace {
constexpr std::array k_names{"failed",   "usage", "config",      "not_found",   "permission", "timeout",
                             "conflict", "busy",  "unsupported", "interrupted", "failed"};
} // namespace

const char* to_string(ErrorCode code) {
  return name_in(k_names, code);
}

ErrorCode error_code_from(const std::string& name) {
  const auto found = std::ranges::find(k_names, name);
  return found == k_names.end() ? ErrorCode::failed : static_cast<ErrorCode>(found - k_names.begin());
}

std::string errno_text(int error_number) {
  std::array<char, 256> buffer{};
  return strerror_r(error_number, buffer.data(), buffer.size()); // the GNU variant: returns the text
}

namespace {

/// Returns what to do about a path that cannot be written because of its file system; "" for other errors.
std::string hint_for(int error_number, const std::string& path) {
  if (!path.starts_with('/'))
    return "";
  const auto directory = shell_quote(parent_path(path));
  if (error_number == ENOSPC)
    return fmt::format("make room: `df -h {0}`, `df -i {0}`", directory);
  return error_number == EROFS ? fmt::format("make it writable: `findmnt -T {}` shows its file system", directory) : "";
}

} // namespace

Error errno_error(int error_number, std::string what, std::string hint) {
  constexpr std::array<std::pair<int, ErrorCode>, 5> k_codes{{{EACCES, ErrorCode::permission},
                                                              {EPERM, ErrorCode::permission},
                                                              {ENOENT, ErrorCode::not_found},
                                                              {ETIMEDOUT, ErrorCode::timeout},
                                                              {EBUSY, ErrorCode::busy}}};
  const auto known = std::ranges::find(k_codes, error_number, &std::pair<int, ErrorCode>::first);
  if (hint.empty())
    hint = hint_for(error_number, what);
  return {known == k_codes.end() ? ErrorCode::failed : known->second,
          std::move(what) + ": " + errno_text(error_number),
          std::move(hint),
          {}};
}

} // namespace sharefs
