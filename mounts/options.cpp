#include "mounts/options.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr std::array<std::string_view, 4> k_attribute_times{"acregmin", "acregmax", "acdirmin", "acdirmax"};

/// Spellings of one value that mean the same.
std::string canonical_value(std::string_view key, std::string_view value) {
  if (key == "lookupcache" && value == "pos")
    return "positive";
  return std::string(value);
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (const char character : list) {
    quoted = quoted != (character == '"');
    if (character == ',' && !quoted)
      words.emplace_back();
    else
      words.back() += character;
  }
  for (auto& word : words)
    word = std::string(trim(word));
  std::erase_if(words, [](const std::string& word) { return word.empty(); });
  return words;
}

Setting parse_option(const std::string& text) {
  const auto equals = text.find('=');
  const auto name = std::string_view(text).substr(0, equals);
  const auto value = equals == std::string::npos ? std::string_view() : std::string_view(text).substr(equals + 1);
  const auto* row = find_option(name);
  if (row == nullptr)
    return {std::string(name), value.empty() ? "yes" : std::string(value), text};
  const auto key = row->key.empty() ? row->name : row->key;
  if (!row->value.empty())
    return {std::string(key), std::string(row->value), text};
  return {std::string(key), canonical_value(key, value), text};
}

std::string_view name_of(const Setting& setting) {
  return std::string_view(setting.text).substr(0, setting.text.find('='));
}

/// systemd's and the user's own options of fstab: x-systemd.automount, x-initrd.mount
bool is_comment(std::string_view name) {
  return name.starts_with("x-") || name.starts_with("X-");
}

bool has_effect(Versions versions, int major) {
  return versions == Versions::any || major == 0 || (versions == Versions::v3) == (major == 3);
}

Diagnosis unknown_option(const Setting& setting, const std::string& subject) {
  std::vector<std::string> names;
  for (const auto& row : option_table())
    names.emplace_back(row.name);
  const auto near = did_you_mean_hint(name_of(setting), names);
  // A newer kernel may know more than this table: only what looks like a typing mistake is refused.
  if (near.empty())
    return {Severity::warning,
            "SF205",
            subject,
            fmt::format("`{}` is no mount option that sharefs knows; it is passed on as it is", setting.text),
            "see nfs(5) for the options of this machine",
            ""};
  return {Severity::error, "SF205", subject, fmt::format("`{}` is no mount option", setting.text), near, ""};
}

} // namespace

Settings parse_options(const std::vector<std::string>& lists) {
  Settings settings;
  for (const auto& list : lists)
    for (const auto& word : split_list(list))
      settings.push_back(parse_option(word));
  return settings;
}

Settings override_settings(Settings base, const Settings& extra) {
  for (const auto& setting : extra) {
    if (setting.key == "actimeo")
      std::erase_if(base, [](const Setting& old) {
        return std::find(k_attribute_times.begin(), k_attribute_times.end(), old.key) != k_attribute_times.end();
      });
    const auto same_key = [&](const Setting& old) { return old.key == setting.key; };
    const auto place = std::find_if(base.begin(), base.end(), same_key);
    if (place == base.end())
      base.push_back(setting);
    else
      *place = setting;
  }
  return base;
}

const Setting* find_setting(const Settings& settings, std::string_view key) {
  const auto found = std::find_if(settings.rbegin(), settings.rend(), [&](const Setting& s) { return s.key == key; });
  return found == settings.rend() ? nullptr : &*found;
}

Settings expand(const Settings& settings) {
  Settings expanded;
  for (const auto& setting : settings) {
    if (setting.key != "actimeo") {
      expanded.push_back(setting);
      continue;
    }
    for (const auto time : k_attribute_times)
      expanded.push_back({std::string(time), setting.value, fmt::format("{}={}", time, setting.value)});
  }
  return expanded;
}

std::string format_options(const Settings& settings) {
  std::vector<std::string> words;
  words.reserve(settings.size());
  for (const auto& setting : settings)
    words.push_back(setting.text);
  return join(words, ",");
}

Settings for_mount(const Settings& settings) {
  Settings kept = settings;
  std::erase_if(kept, [](const Setting& setting) {
    const auto* row = find_option(name_of(setting));
    return is_comment(name_of(setting)) || (row != nullptr && row->use == OptionUse::fstab);
  });
  return kept;
}

std::string version_of(const Settings& settings) {
  const auto* version = find_setting(settings, "vers");
  const auto* minor = find_setting(settings, "minorversion");
  if (version == nullptr)
    return minor == nullptr ? "" : "4." + minor->value;
  if (version->value == "4" && minor != nullptr)
    return "4." + minor->value;
  return version->value;
}

int major_version(std::string_view version) {
  if (version.starts_with('4'))
    return 4;
  return version.starts_with('3') ? 3 : 0;
}

Diagnoses check_options(const Settings& settings, const std::string& subject) {
  Diagnoses found;
  const int major = major_version(version_of(settings));
  for (std::size_t index = 0; index < settings.size(); ++index) {
    const auto& setting = settings[index];
    const auto* row = find_option(name_of(setting));
    if (row == nullptr) {
      if (!is_comment(name_of(setting)))
        found.push_back(unknown_option(setting, subject));
      continue;
    }
    if (row->use == OptionUse::refused)
      found.push_back({Severity::error, "SF206", subject,
                       fmt::format("`{}` does not mount an NFS export", setting.text), "remove it from `options:`",
                       ""});
    if (row->value.empty() && setting.value.empty())
      found.push_back({Severity::error, "SF206", subject, fmt::format("`{}` needs a value", setting.text),
                       fmt::format("write `{}=VALUE`", row->name), ""});
    if (!has_effect(row->versions, major))
      found.push_back({Severity::warning, "SF207", subject,
                       fmt::format("`{}` has no effect on NFS {}", setting.text, version_of(settings)),
                       "remove it, or ask for another version", ""});
    if (row->use == OptionUse::ignored)
      found.push_back({Severity::warning, "SF207", subject,
                       fmt::format("`{}` has had no effect since kernel 2.6.25", setting.text), "remove it", ""});
    const auto* last = find_setting(settings, setting.key);
    if (last != &settings[index] && last->value != setting.value)
      found.push_back({Severity::error, "SF206", subject,
                       fmt::format("`{}` and `{}` contradict each other", setting.text, last->text), "keep one of them",
                       ""});
  }
  return found;
}

std::vector<std::string> consequences(const Settings& settings) {
  std::vector<std::string> lines;
  const int major = major_version(version_of(settings));
  for (const auto& setting : settings) {
    const auto* row = find_option(name_of(setting));
    const bool udp = setting.key == "proto" && setting.value.starts_with("udp");
    const auto* telling = udp ? find_option("udp") : row;
    if (telling == nullptr || telling->consequence.empty() || !has_effect(telling->versions, major))
      continue;
    if (setting.key == "local_lock" && setting.value == "none")
      continue;
    lines.emplace_back(telling->consequence);
  }
  return lines;
}

} // namespace sharefs::mounts
