#pragma once
// Result<T> and Error: how every fallible function of sharefs reports. An exception never leaves the file in which it
// is thrown.
#include "base/fields.hpp"

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace sharefs {

/// The kind of thing that went wrong. The command line maps these to exit codes (cli/command.hpp).
enum class ErrorCode {
  failed,      ///< the work could not be done
  usage,       ///< the command line is wrong
  config,      ///< sharefs.yaml or another input file is wrong
  not_found,   ///< something that was named does not exist
  permission,  ///< the kernel or a policy of sharefs refuses
  timeout,     ///< a deadline passed
  conflict,    ///< the machine is no longer as it was when the plan was made
  busy,        ///< somebody else holds the lock or the resource
  unsupported, ///< not possible on this machine or under this --root
  interrupted, ///< Ctrl-C
};

/// The stable lower-case name of a code ("failed", "usage", ...), as it stands in JSON.
const char* to_string(ErrorCode code);
/// Inverse of to_string; `failed` for an unknown name.
ErrorCode error_code_from(const std::string& name);

struct Error {
  ErrorCode code = ErrorCode::failed;
  std::string message; ///< one line, no final period; the place first if there is one: `sharefs.yaml:3:5: unknown key`
  std::string hint;    ///< what to do about it; may be empty
  std::string context; ///< further lines to show below the message, e.g. the source line and a caret; may be empty

  friend bool operator==(const Error&, const Error&) = default;
};
template <FieldsOf<Error> E> auto fields(E& e) {
  return named("code", e.code, "message", e.message, "hint", e.hint, "context", e.context);
}

template <class T> using Result = tl::expected<T, Error>;

/// Makes the error for `return`: `return fail(ErrorCode::config, "message", "hint");` in a function that returns a
/// Result.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string hint = {},
                                  std::string context = {}) {
  return tl::make_unexpected(Error{code, std::move(message), std::move(hint), std::move(context)});
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::make_unexpected(std::move(error));
}

/// Returns "Permission denied" and the like for an errno value; thread-safe.
std::string errno_text(int error_number);
/// Makes an Error for a failed system call: `WHAT: Permission denied`. EACCES and EPERM become `permission`, ENOENT
/// `not_found`, ETIMEDOUT `timeout`, EBUSY `busy`, everything else `failed`.
Error errno_error(int error_number, std::string what, std::string hint = {});

} // namespace sharefs
