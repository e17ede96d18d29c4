#include "base/source.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

namespace sharefs {

std::string format_source(std::string_view server, std::string_view path) {
  const bool bare_ipv6 = server.find(':') != std::string_view::npos && !server.starts_with('[');
  return (bare_ipv6 ? "[" + std::string(server) + "]" : std::string(server)) + ":" + std::string(path);
}

Source parse_source(std::string_view text) {
  if (text.starts_with('[')) {
    const auto end = text.find("]:");
    if (end != std::string_view::npos)
      return {std::string(text.substr(1, end - 1)), std::string(text.substr(end + 2))};
  }
  auto colon = text.find(":/");
  if (colon == std::string_view::npos)
    colon = text.find(':');
  if (colon == std::string_view::npos)
    return {"", std::string(text)};
  return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

bool is_same_host(std::string_view a, std::string_view b) {
  return lower_case(a) == lower_case(b);
}

bool is_same_source(std::string_view a, std::string_view b) {
  const auto one = parse_source(a);
  const auto other = parse_source(b);
  return is_same_host(one.server, other.server) && normalize_path(one.path) == normalize_path(other.path);
}

} // namespace sharefs
