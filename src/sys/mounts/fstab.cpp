#include "sys/mounts/fstab.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

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

} // namespace sharefs::sys
