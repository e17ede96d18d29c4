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

/// An error of the system. `{0}` in its hint stands for the directory in which it happened.
struct KnownErrno {
  int error_number;
  ErrorCode code;
  const char* hint;
};
constexpr std::array k_known{
    KnownErrno{EACCES, ErrorCode::permission, ""},
    KnownErrno{EPERM, ErrorCode::permission, ""},
    KnownErrno{ENOENT, ErrorCode::not_found, ""},
    KnownErrno{ETIMEDOUT, ErrorCode::timeout, ""},
    KnownErrno{EBUSY, ErrorCode::busy, ""},
    KnownErrno{ENOSPC, ErrorCode::failed, "make room (`df -h {0}`, `df -i {0}`), then run the command again"},
    KnownErrno{EDQUOT, ErrorCode::failed, "make room, or have the quota raised (`quota`), then run the command again"},
    KnownErrno{EROFS, ErrorCode::failed,
               "make it writable (`findmnt -T {0}` shows its file system, `dmesg` errors of its disk), then run the "
               "command again"},
    KnownErrno{EIO, ErrorCode::failed, "`dmesg` says more, on a share that of the server; then run the command again"},
    KnownErrno{ESTALE, ErrorCode::failed,
               "the server does not know it any more: `sharefs status`, then run the command again"},
    KnownErrno{EMFILE, ErrorCode::failed,
               "raise the limit of open files (`ulimit -n 4096`), then run the command again"}};

} // namespace

Error errno_error(int error_number, std::string what, std::string hint) {
  const auto* const known = std::ranges::find(k_known, error_number, &KnownErrno::error_number);
  if (known != k_known.end() && hint.empty())
    hint = fmt::format(fmt::runtime(known->hint),
                       what.starts_with('/') ? shell_quote(parent_path(what)) : std::string("DIRECTORY"));
  return {known == k_known.end() ? ErrorCode::failed : known->code,
          std::move(what) + ": " + errno_text(error_number),
          std::move(hint),
          {}};
}

} // namespace sharefs
