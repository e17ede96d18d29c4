#include "base/json.hpp"

#include "base/text.hpp"

#include <fmt/format.h>
#include <vector>

namespace sharefs {

namespace {

/// Returns the position of the quote that ends the string which begins at `at`; the end of the text if there is none.
std::size_t find_end_of_string(std::string_view text, std::size_t at) {
  for (auto end = text.find('"', at + 1); end != std::string_view::npos; end = text.find('"', end + 1)) {
    std::size_t escapes = 0;
    while (text[end - 1 - escapes] == '\\')
      ++escapes;
    if (escapes % 2 == 0)
      return end;
  }
  return text.size();
}

} // namespace

std::string find_json_excess(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return "is larger than " + format_bytes(limits.bytes);
  struct Open {
    bool object;
    std::size_t members;
  };
  std::vector<Open> open;
  std::size_t values = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (byte == '"') {
      at = find_end_of_string(text, at);
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
