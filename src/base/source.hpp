#pragma once
// The source of a mount, as mount(8) and mountinfo write it: `server:/path` or `[2001:db8::1]:/path`.
#include <string>
#include <string_view>

namespace sharefs {

struct Source {
  std::string server; ///< without brackets
  std::string path;
  friend bool operator==(const Source&, const Source&) = default;
};

/// Returns `server:path`; an IPv6 address gets brackets.
std::string format_source(std::string_view server, std::string_view path);
/// Reads a source. The host ends at the first `:/` (or, for a relative path, at the first `:`); a text without a colon
/// is all path.
Source parse_source(std::string_view text);
/// True for the same host and path. Host names are compared without regard to case, and slashes at the end of a path
/// are ignored.
bool is_same_source(std::string_view a, std::string_view b);
bool is_same_host(std::string_view a, std::string_view b);

} // namespace sharefs
