#include "base/result.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <cstring>

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

Error errno_error(int error_number, std::string what, std::string hint) {
  struct Row {
    int error_number;
    ErrorCode code;
    const char* hint;
  };
  static constexpr std::array k_rows{
      Row{EACCES, ErrorCode::permission, ""},
      Row{EPERM, ErrorCode::permission, ""},
      Row{ENOENT, ErrorCode::not_found, ""},
      Row{ETIMEDOUT, ErrorCode::timeout, ""},
      Row{EBUSY, ErrorCode::busy, ""},
      Row{ENOSPC, ErrorCode::failed,
          "make room (`df -h`, and `df -i` for the number of files), then run the command again"},
      Row{EDQUOT, ErrorCode::failed, "make room, or have the quota raised (`quota`), then run the command again"},
      Row{EROFS, ErrorCode::failed,
          "`dmesg` says if the disk has errors; once it can be written to, run the command again"},
      Row{EIO, ErrorCode::failed, "`dmesg` says more, on a share that of the server; then run the command again"},
      Row{ESTALE, ErrorCode::failed,
          "the server does not know it any more: `sharefs status`, then run the command again"},
      Row{EMFILE, ErrorCode::failed, "raise the limit of open files (`ulimit -n 4096`), then run the command again"}};
  const auto known = std::ranges::find(k_rows, error_number, &Row::error_number);
  if (known != k_rows.end() && hint.empty())
    hint = known->hint;
  return {known == k_rows.end() ? ErrorCode::failed : known->code,
          std::move(what) + ": " + errno_text(error_number),
          std::move(hint),
          {}};
}

} // namespace sharefs
