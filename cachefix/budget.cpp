#include "cachefix/budget.hpp"

#include <algorithm>
#include <utility>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_steps_between_looks = 1024; // at the clock

constexpr std::pair<std::size_t Budget::*, const char*> k_reasons[] = {
    {&Budget::words, "its launchers have too many words"},
    {&Budget::bytes, "its texts and the values of their variables have too many bytes"},
    {&Budget::files, "it leads to too many files"},
    {&Budget::parsers, "it leads to too many texts that a parser would have to read"},
    {&Budget::steps, "its texts have too many commands"},
    {&Budget::depth, "too many launchers or texts stand one inside of another"},
};

} // namespace

bool Budget::take(std::size_t Budget::* what, std::size_t amount) {
  if (is_spent())
    return false;
  std::size_t& left = this->*what;
  if (left < amount) {
    spent = std::ranges::find(k_reasons, what, [](const auto& one) { return one.first; })->second;
    return false;
  }
  left -= amount;
  const bool looks = what != &Budget::steps || amount > 1 || left % k_steps_between_looks == 0;
  if (looks && std::chrono::steady_clock::now() >= end)
    spent = "reading it takes too long";
  return !is_spent();
}

std::chrono::milliseconds Budget::time(std::chrono::milliseconds most) const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return std::clamp(left, std::chrono::milliseconds(1), most);
}

int nesting_of(std::string_view text, bool strings) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"' && strings) {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

} // namespace sharefs::cachefix
