#include "base/json.hpp"

#include "base/text.hpp"

#include <fmt/format.h>
#include <vector>

namespace sharefs {

std::string json_excess(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return "is larger than " + format_bytes(limits.bytes);
  struct Open {
    bool object;
    std::size_t members;
  };
  std::vector<Open> open;
  std::size_t values = 0;
  bool in_text = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (byte == '"') {
      in_text = !in_text;
    } else if (in_text) {
      at += byte == '\\' ? 1 : 0;
    } else if (byte == '[' || byte == '{' || byte == ',') {
      if (++values > limits.values)
        return fmt::format("holds more than {} values", limits.values);
      if (byte != ',')
        open.push_back({byte == '{', 1});
      else if (!open.empty() && ++open.back().members > limits.members && open.back().object)
        return fmt::format("holds an object with more than {} members", limits.members);
      if (open.size() > limits.depth)
        return fmt::format("is nested deeper than {}", limits.depth);
    } else if ((byte == ']' || byte == '}') && !open.empty()) {
      open.pop_back();
    }
  }
  return {};
}

} // namespace sharefs
