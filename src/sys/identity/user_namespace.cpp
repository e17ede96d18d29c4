#include "sys/identity/user_namespace.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace sharefs::sys {
namespace {

struct Range {
  std::uint64_t inside = 0, outside = 0, count = 0;
};

std::vector<Range> read_map() {
  constexpr std::size_t k_longest = 1U << 16U;
  const Fd file(::open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file || read_all(file.get(), text, k_longest) != 0) // a kernel without user namespaces
    return {{0, 0, k_unmapped_uid}};
  std::vector<Range> ranges;
  for (const auto& line : split_lines(text)) {
    const auto words = split_words(line);
    const auto number = [&](std::size_t at) { return parse_number<std::uint64_t>(words[at]).value_or(0); };
    if (words.size() == 3)
      ranges.push_back({number(0), number(1), number(2)});
  }
  return ranges;
}

} // namespace

bool is_root_unmapped() {
  static std::atomic<pid_t> asked_by{0};
  static std::atomic<bool> unmapped{false};
  if (const pid_t self = ::getpid(); asked_by != self) { // a child may have entered a namespace of its own
    unmapped = std::ranges::none_of(read_map(), [](const Range& range) { return range.outside == 0; });
    asked_by = self;
  }
  return unmapped;
}

uid_t outside_uid(uid_t inside) {
  for (const auto& range : read_map())
    if (inside >= range.inside && inside - range.inside < range.count)
      return static_cast<uid_t>(range.outside + (inside - range.inside));
  return inside;
}

} // namespace sharefs::sys
