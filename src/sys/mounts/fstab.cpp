#include "sys/mounts/fstab.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::sys {

std::vector<FstabLine> parse_fstab(std::string_view text) {
  std::vector<FstabLine> lines;
  std::size_t number = 0;
  for (const auto& line : split_lines(text)) {
    ++number;
    const auto fields = split_words(line);
    if (fields.size() < 3 || fields[0].starts_with('#') || !fields[1].starts_with('/'))
      continue;
    lines.push_back({number, decode_octal(fields[0]), normalize_path(decode_octal(fields[1])), fields[2],
                     fields.size() > 3 ? fields[3] : "defaults"});
  }
  return lines;
}

const FstabLine* find_unmounted(const std::vector<FstabLine>& lines, const MountTable& table, const std::string& path) {
  const auto* const owner = table.owner_of(path);
  const auto is_bare = [&](const FstabLine& line) {
    return line.target != "/" && is_under(path, line.target) && table.at(line.target) == nullptr &&
           (owner == nullptr || !is_under(owner->target, line.target));
  };
  const auto found = std::ranges::find_if(lines, is_bare);
  return found == lines.end() ? nullptr : &*found;
}

std::string hint_to_mount(const FstabLine& line) {
  return fmt::format("`mount {}`; if it is meant to be so, take the line out of {}", shell_quote(line.target), k_fstab);
}

} // namespace sharefs::sys
