#include "sys/configured_mounts.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::sys {

std::vector<ConfiguredMount> parse_fstab(std::string_view text) {
  std::vector<ConfiguredMount> lines;
  std::size_t number = 0;
  for (const auto& line : split_lines(text)) {
    ++number;
    const auto fields = split_words(line);
    if (fields.size() < 3 || fields[0].starts_with('#') || !fields[1].starts_with('/'))
      continue;
    lines.push_back({fmt::format("{}:{}", k_fstab, number), decode_octal(fields[0]),
                     normalize_path(decode_octal(fields[1])), fields[2], fields.size() > 3 ? fields[3] : "defaults"});
  }
  return lines;
}

ConfiguredMount parse_mount_unit(const std::string& path, std::string_view text) {
  const auto setting = [lines = split_lines(text)](std::string_view name) {
    std::string value;
    for (const auto& line : lines) {
      const auto words = trim(line);
      const auto rest = trim(words.substr(std::min(name.size(), words.size())));
      if (words.starts_with(name) && rest.starts_with('='))
        value = trim(rest.substr(1));
    }
    return value;
  };
  const auto target = setting("Where");
  return {path, setting("What"), target.empty() ? "" : normalize_path(target), setting("Type"), setting("Options")};
}

std::vector<ConfiguredMount> read_configured_mounts(System& system) {
  constexpr std::size_t k_longest_text = 16U << 20U;
  auto found = system.entries(
      {{{.path = k_fstab, .follow = true, .read_bytes = k_longest_text}, {.path = k_unit_directory, .list = true}}});
  EntryRequest units;
  for (const auto& name : found[1].names)
    if (name.ends_with(".mount"))
      units.queries.push_back(
          {.path = join_path(k_unit_directory, name), .follow = true, .read_bytes = k_longest_text});
  auto all = parse_fstab(found[0].content);
  for (const auto& unit : units.queries.empty() ? std::vector<Entry>() : system.entries(units))
    if (auto one = parse_mount_unit(unit.path, unit.content); !one.target.empty())
      all.push_back(std::move(one));
  return all;
}

const ConfiguredMount* find_unmounted(const std::vector<ConfiguredMount>& configured, const MountTable& table,
                                      const std::string& path) {
  const auto* const owner = table.owner_of(path);
  const auto is_bare = [&](const ConfiguredMount& one) {
    return one.target != "/" && is_under(path, one.target) && table.at(one.target) == nullptr &&
           (owner == nullptr || !is_under(owner->target, one.target));
  };
  const auto found = std::ranges::find_if(configured, is_bare);
  return found == configured.end() ? nullptr : &*found;
}

std::string hint_to_mount(const ConfiguredMount& one) {
  if (one.origin.starts_with(k_unit_directory))
    return fmt::format("`systemctl start {}`; if it is meant to be so, take the unit away",
                       shell_quote(base_name(one.origin)));
  return fmt::format("`mount {}`; if it is meant to be so, take the line out of {}", shell_quote(one.target), k_fstab);
}

} // namespace sharefs::sys
