#include "mounts/compare.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

std::string without_six(std::string_view transport) {
  return std::string(transport.ends_with('6') ? transport.substr(0, transport.size() - 1) : transport);
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9')
      break;
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return value;
}

bool meets(Comparison comparison, std::string_view asked, std::string_view actual) {
  switch (comparison) {
  case Comparison::exact:
  case Comparison::first_mount:
    return asked == actual;
  case Comparison::at_most:
    return number(actual) <= number(asked);
  case Comparison::version:
    return asked == actual || (asked == "4" && actual.starts_with("4."));
  case Comparison::transport:
    return without_six(asked) == without_six(actual);
  case Comparison::none:
    return true;
  }
  return true;
}

/// How an option of this key and value is written: "hard", "nconnect=1".
std::string spelled(std::string_view key, std::string_view value) {
  for (const auto& row : option_table())
    if (row.key == key && row.value == value)
      return std::string(row.name);
  return fmt::format("{}={}", key, value);
}

bool is_compared(const Setting& setting, int actual_major) {
  const auto* row = find_option(std::string_view(setting.text).substr(0, setting.text.find('=')));
  if (row == nullptr || row->use != OptionUse::kernel)
    return false;
  if (setting.key == "port" && setting.value == "0") // "ask the portmapper"
    return false;
  // `nolock` on NFS 4: the kernel clears it
  return row->versions == Versions::any || actual_major == 0 || (row->versions == Versions::v3) == (actual_major == 3);
}

} // namespace

Settings shown_settings(const sys::MountEntry& mount) {
  auto shown = parse_options({mount.super_options});
  const auto super_access = find_setting(shown, "access");
  const bool read_only = super_access != nullptr && super_access->value == "ro";
  shown = override_settings(std::move(shown), parse_options({mount.options}));
  if (read_only)
    shown = override_settings(std::move(shown), parse_options({"ro"}));
  return shown;
}

std::vector<Difference> compare_options(const Settings& asked, const sys::MountEntry& mount) {
  const auto wanted = override_settings({}, asked);
  const auto shown = shown_settings(mount);
  const int actual_major = major_version(version_of(shown));
  std::vector<Difference> differences;
  for (const auto& setting : wanted) {
    if (!is_compared(setting, actual_major))
      continue;
    // `actimeo` is shown as four options and reported as one.
    std::vector<std::string> actual;
    bool fault = true;
    for (const auto& part : expand({setting})) {
      const auto key = find_key(part.key);
      const bool overridden = setting.key == "actimeo" && find_setting(wanted, part.key) != nullptr;
      const auto* its = find_setting(shown, part.key);
      const std::string value = its != nullptr ? its->value : std::string(key.absent);
      const auto asked_value = part.key == "vers" ? version_of(wanted) : part.value;
      if (overridden || value.empty() || meets(key.comparison, asked_value, value))
        continue;
      actual.push_back(its != nullptr ? its->text : fmt::format("({})", spelled(part.key, value)));
      fault = key.comparison != Comparison::first_mount;
    }
    if (!actual.empty())
      differences.push_back({setting.key, setting.text, join(actual, ","), fault});
  }
  return differences;
}

bool has_faults(const std::vector<Difference>& differences) {
  return std::any_of(differences.begin(), differences.end(), [](const Difference& one) { return one.fault; });
}

std::string describe(const std::vector<Difference>& differences) {
  std::vector<std::string> words;
  words.reserve(differences.size());
  for (const auto& one : differences)
    words.push_back(fmt::format("{} instead of {}", one.actual, one.asked));
  return join(words, ", ");
}

bool same_source(const MountPoint& point, const sys::MountEntry& mount, const std::string& address) {
  if (!sys::is_nfs(mount))
    return false;
  const auto actual = parse_source(mount.source);
  if (normalize_path(actual.path) != normalize_path(point.path))
    return false;
  if (is_same_host(actual.server, point.server))
    return true;
  const auto shown = parse_options({mount.super_options});
  const auto* used = find_setting(shown, "addr");
  if (used == nullptr || address.empty())
    return true;
  return used->value == address || used->value == point.server;
}

bool is_submount(const sys::MountEntry& parent, const sys::MountEntry& child) {
  if (!sys::is_nfs(parent) || !sys::is_nfs(child) || child.parent != parent.id)
    return false;
  const auto above = parse_source(parent.source);
  const auto below = parse_source(child.source);
  if (!is_same_host(above.server, below.server) || !is_under(child.target, parent.target) ||
      child.target == parent.target)
    return false;
  const auto relative = child.target.substr(parent.target == "/" ? 0 : parent.target.size());
  return normalize_path(below.path) == normalize_path(above.path + "/" + relative);
}

std::vector<const sys::MountEntry*> layers(const sys::MountTable& table, const std::string& target) {
  std::vector<const sys::MountEntry*> found;
  const auto& entries = table.entries();
  const auto* top = table.at(target);
  while (top != nullptr && sys::is_nfs(*top) && found.size() <= entries.size()) {
    found.push_back(top);
    const auto below = std::find_if(entries.begin(), entries.end(), [&](const sys::MountEntry& one) {
      return one.id == top->parent && one.target == target && &one != top;
    });
    top = below == entries.end() ? nullptr : &*below;
  }
  return found;
}

std::vector<const sys::MountEntry*> nested(const sys::MountTable& table, const std::string& target) {
  const auto* top = table.at(target);
  auto found = table.below(target);
  std::erase_if(found, [&](const sys::MountEntry* one) {
    return one->target == target || (top != nullptr && is_submount(*top, *one));
  });
  return found;
}

std::string remount_options(const sys::MountEntry& mount) {
  constexpr auto k_kernels_own = std::to_array<std::string_view>(
      {"addr", "clientaddr", "mountaddr", "mountport", "mountproto", "mountvers", "namlen", "bsize"});
  auto settings = shown_settings(mount);
  const bool nolock = find_setting(settings, "lock") != nullptr;
  std::erase_if(settings, [&](const Setting& setting) {
    if (setting.key == "atime" && setting.value == "relatime")
      return true;
    if (setting.key == "local_lock")
      return nolock || setting.value == "none";
    return std::find(k_kernels_own.begin(), k_kernels_own.end(), setting.key) != k_kernels_own.end();
  });
  return format_options(for_mount(settings));
}

} // namespace sharefs::mounts
