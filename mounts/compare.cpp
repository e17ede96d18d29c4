#include "mounts/compare.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

std::string_view without_six(std::string_view transport) {
  return transport.substr(0, transport.size() - (transport.ends_with('6') ? 1 : 0));
}

std::uint64_t parse_count(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}

bool meets(OptionUse use, const std::string& asked, const std::string& actual) {
  switch (use) {
  case OptionUse::exact:
  case OptionUse::first_mount:
    return asked == actual;
  case OptionUse::at_most: {
    constexpr std::uint64_t k_least = 1024, k_instead = 4096; // nfs(5): a smaller value is replaced
    const auto most = parse_count(asked);
    return parse_count(actual) <= (most < k_least ? k_instead : most);
  }
  case OptionUse::one_of:
    return contains(split(asked, ':'), actual);
  case OptionUse::version:
    return asked == actual || (asked == "4" && actual.starts_with("4."));
  case OptionUse::transport:
    return without_six(asked) == without_six(actual);
  default:
    return true;
  }
}

/// Returns how an option of this key and value is written: "hard", "nconnect=1".
std::string option_text(std::string_view key, std::string_view value) {
  for (const auto& row : option_table())
    if (row.key == key && row.value == value)
      return std::string(row.name);
  return fmt::format("{}={}", key, value);
}

} // namespace

Settings shown_settings(const sys::MountEntry& mount) {
  auto shown = parse_options({mount.super_options});
  const bool read_only = value_of(shown, "access") == "ro";
  shown = override_settings(std::move(shown), parse_options({mount.options}));
  if (read_only)
    shown = override_settings(std::move(shown), parse_options({"ro"}));
  return shown;
}

std::vector<Difference> compare_options(const Settings& asked, const sys::MountEntry& mount) {
  auto wanted = override_settings({}, asked);
  if (find_setting(wanted, "exec") == nullptr) // `exec` is the default of mount(8)
    wanted = override_settings(std::move(wanted), parse_options({"exec"}));
  const auto shown = shown_settings(mount);
  const int actual_major = major_version(version_of(shown));
  std::vector<Difference> differences;
  for (const auto& setting : wanted) {
    std::vector<std::string> actual; // mountinfo shows `actimeo` as four options; they are reported as one difference
    bool fault = true;
    for (const auto& part : expand({setting})) {
      const auto* row = find_option(part.text);
      const bool overridden = setting.key == "actimeo" && find_setting(wanted, part.key) != nullptr;
      const bool any_port = part.key == "port" && part.value == "0"; // 0: the client asks the portmapper
      // mountinfo does not show options without an effect, such as `nolock` on NFS 4.
      if (row == nullptr || !row->has_effect(actual_major) || overridden || any_port)
        continue;
      const auto* its = find_setting(shown, part.key);
      const std::string value = its != nullptr ? its->value : std::string(row->absent);
      if (value.empty() || meets(row->use, part.key == "vers" ? version_of(wanted) : part.value, value))
        continue;
      actual.push_back(its != nullptr ? its->text : fmt::format("({})", option_text(part.key, value)));
      fault = row->use != OptionUse::first_mount;
    }
    if (!actual.empty())
      differences.push_back({setting.key, setting.text, join(actual, ","), fault});
  }
  return differences;
}

bool has_faults(const std::vector<Difference>& differences) {
  return std::ranges::any_of(differences, &Difference::fault);
}

bool can_remount(const std::vector<Difference>& differences) {
  constexpr auto k_rights = std::to_array<std::string_view>({"access", "suid", "dev", "exec"});
  return std::ranges::all_of(differences, [&](const Difference& one) {
    return !one.fault || std::ranges::find(k_rights, one.key) != k_rights.end();
  });
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
  const auto used = value_of(shown, "addr");
  return used.empty() || address.empty() || used == address || used == point.server;
}

bool is_submount(const sys::MountEntry& parent, const sys::MountEntry& child) {
  if (!sys::is_nfs(parent) || !sys::is_nfs(child) || child.parent != parent.id || child.target == parent.target ||
      !is_under(child.target, parent.target))
    return false;
  const auto above = parse_source(parent.source);
  const auto relative = child.target.substr(parent.target == "/" ? 0 : parent.target.size());
  return is_same_source(child.source, format_source(above.server, above.path + "/" + relative));
}

MountsAt find_mounts_at(const sys::MountTable& table, const std::string& target) {
  MountsAt found;
  const auto* top = table.at(target);
  int next = top == nullptr ? -1 : top->id;       // id of the next layer
  for (const auto* mount : table.below(target)) { // an upper mount comes before the mount that it lies on
    if (mount->target != target) {
      if (top == nullptr || !is_submount(*top, *mount))
        found.below.push_back(mount);
    } else if (mount->id == next && sys::is_nfs(*mount)) {
      found.layers.push_back(mount);
      next = mount->parent;
    }
  }
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
