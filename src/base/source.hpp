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

/// An IPv6 address gets its brackets.
std::string format_source(std::string_view server, std::string_view path);
/// The host ends at the first `:/` (or, for a relative path, at the first `:`); a text without a colon is all path.
Source parse_source(std::string_view text);
/// The same host and path. Letters of a host's name may be capitals, and a path may end in slashes.
bool is_same_source(std::string_view a, std::string_view b);
bool is_same_host(std::string_view a, std::string_view b);

} // namespace sharefs
