#include "mounts/mount_point.hpp"

#include <fmt/format.h>

namespace sharefs::mounts {

std::string format_source(std::string_view server, std::string_view path) {
  const bool bare_ipv6 = server.find(':') != std::string_view::npos && !server.starts_with('[');
  return bare_ipv6 ? fmt::format("[{}]:{}", server, path) : fmt::format("{}:{}", server, path);
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

std::string title(std::string_view name, std::string_view target) {
  return name.empty() ? std::string(target) : fmt::format("{} ({})", name, target);
}

} // namespace sharefs::mounts
