#include "sys/read_configured_mounts.hpp"

#include "base/path.hpp"

namespace sharefs::sys {

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

} // namespace sharefs::sys
