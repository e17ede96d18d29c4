#include "base/result.hpp"

#include <array>
#include <cerrno>
#include <cstring>

namespace sharefs {

namespace {
constexpr std::array<std::pair<ErrorCode, const char*>, 10> k_names{{{ErrorCode::failed, "failed"},
                                                                     {ErrorCode::usage, "usage"},
                                                                     {ErrorCode::config, "config"},
                                                                     {ErrorCode::not_found, "not_found"},
                                                                     {ErrorCode::permission, "permission"},
                                                                     {ErrorCode::timeout, "timeout"},
                                                                     {ErrorCode::conflict, "conflict"},
                                                                     {ErrorCode::busy, "busy"},
                                                                     {ErrorCode::unsupported, "unsupported"},
                                                                     {ErrorCode::interrupted, "interrupted"}}};
} // namespace

const char* to_string(ErrorCode code) {
  for (const auto& [value, name] : k_names)
    if (value == code)
      return name;
  return "failed";
}

ErrorCode error_code_from(const std::string& name) {
  for (const auto& [value, text] : k_names)
    if (name == text)
      return value;
  return ErrorCode::failed;
}

std::string errno_text(int error_number) {
  std::array<char, 256> buffer{};
  return strerror_r(error_number, buffer.data(), buffer.size()); // the GNU variant: returns the text
}

Error errno_error(int error_number, std::string what, std::string hint) {
  auto code = ErrorCode::failed;
  switch (error_number) {
  case EACCES:
  case EPERM:
    code = ErrorCode::permission;
    break;
  case ENOENT:
    code = ErrorCode::not_found;
    break;
  case ETIMEDOUT:
    code = ErrorCode::timeout;
    break;
  case EBUSY:
    code = ErrorCode::busy;
    break;
  default:
    break;
  }
  return Error{code, std::move(what) + ": " + errno_text(error_number), std::move(hint), {}};
}

} // namespace sharefs
