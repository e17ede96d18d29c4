#include "mounts/options.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr std::array<std::string_view, 4> k_attribute_times{"acregmin", "acregmax", "acdirmin", "acdirmax"};

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
  const auto equals = std::min(text.find('='), text.size());
  const auto name = text.substr(0, equals);
  const auto value = text.substr(std::min(equals + 1, text.size()));
  const auto* row = find_option(name);
  if (row == nullptr)
    return {name, value.empty() ? "yes" : value, text};
  const auto key = row->key.empty() ? name : std::string(row->key);
  if (!row->value.empty())
    return {key, std::string(row->value), text};
  return {key, key == "lookupcache" && value == "pos" ? "positive" : value, text}; // mountinfo shows either spelling
}

/// True for comment options of fstab, which are no NFS options: x-systemd.automount, x-initrd.mount.
bool is_comment(std::string_view option) {
  return option.starts_with("x-") || option.starts_with("X-");
}

/// Returns "did you mean `X`?", or "".
std::string nearest_option(const Setting& setting) {
  std::vector<std::string> names;
  for (const auto& row : option_table())
    names.emplace_back(row.name);
  return is_comment(setting.text) ? "" : did_you_mean_hint(setting.text.substr(0, setting.text.find('=')), names);
}

} // namespace

Settings parse_options(const std::vector<std::string>& lists) {
  Settings settings;
  for (const auto& list : lists)
    for (const auto& word : split_list(list))
      settings.push_back(parse_option(word));
  return settings;
}

std::string bind_options(const Settings& settings) {
  std::vector<std::string> words;
  for (const auto& setting : override_settings({}, settings))
    if (setting.text == "ro" || setting.text == "nosuid" || setting.text == "nodev" || setting.text == "noexec")
      words.push_back(setting.text);
  return join(words, ",");
}

Settings override_settings(Settings base, const Settings& extra) {
  for (const auto& setting : extra) {
    if (setting.key == "actimeo")
      std::erase_if(base, [](const Setting& old) {
        return std::find(k_attribute_times.begin(), k_attribute_times.end(), old.key) != k_attribute_times.end();
      });
    const auto place = std::ranges::find(base, setting.key, &Setting::key);
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

std::string_view value_of(const Settings& settings, std::string_view key) {
  const auto* setting = find_setting(settings, key);
  return setting == nullptr ? std::string_view() : setting->value;
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
    const auto* row = find_option(setting.text);
    return is_comment(setting.text) || (row != nullptr && row->use == OptionUse::fstab);
  });
  return kept;
}

std::string version_of(const Settings& settings) {
  const auto* version = find_setting(settings, "vers");
  const auto* minor = find_setting(settings, "minorversion");
  if (minor != nullptr && (version == nullptr || version->value == "4"))
    return "4." + minor->value;
  return version == nullptr ? "" : version->value;
}

int major_version(std::string_view version) {
  if (version.starts_with('4'))
    return 4;
  return version.starts_with('3') ? 3 : 0;
}

Diagnoses check_options(const Settings& settings, const std::string& subject) {
  Diagnoses found;
  const auto add = [&](Severity severity, std::string code, std::string message, std::string hint) {
    found.push_back({severity, std::move(code), subject, std::move(message), std::move(hint), ""});
  };
  const int major = major_version(version_of(settings));
  for (const auto& setting : settings) {
    const auto* row = find_option(setting.text);
    if (row == nullptr) {
      // A newer kernel may know more options than the table, so only a likely typing mistake is refused.
      if (const auto near = nearest_option(setting); !near.empty())
        add(Severity::error, "SF205", fmt::format("`{}` is no mount option", setting.text), near);
      else if (!is_comment(setting.text))
        add(Severity::warning, "SF205",
            fmt::format("`{}` is no mount option that sharefs knows; it is passed on as it is", setting.text),
            "see nfs(5) for the options of this machine");
      continue;
    }
    if (row->use == OptionUse::refused)
      add(Severity::error, "SF206", fmt::format("`{}` does not mount an NFS export", setting.text),
          "remove it from `options:`");
    if (row->value.empty() && setting.value.empty())
      add(Severity::error, "SF206", fmt::format("`{}` needs a value", setting.text),
          fmt::format("write `{}=VALUE`", row->name));
    if (!row->has_effect(major))
      add(Severity::warning, "SF207", fmt::format("`{}` has no effect on NFS {}", setting.text, version_of(settings)),
          "remove it, or ask for another version");
    if (row->use == OptionUse::ignored)
      add(Severity::warning, "SF207", fmt::format("`{}` has had no effect since kernel 2.6.25", setting.text),
          "remove it");
    if (const auto* last = find_setting(settings, setting.key); last != &setting && last->value != setting.value)
      add(Severity::error, "SF206", fmt::format("`{}` and `{}` contradict each other", setting.text, last->text),
          "keep one of them");
  }
  return found;
}

std::vector<std::string> consequences(const Settings& settings) {
  std::vector<std::string> lines;
  const int major = major_version(version_of(settings));
  for (const auto& setting : settings) {
    const bool udp = setting.key == "proto" && setting.value.starts_with("udp");
    const auto* row = find_option(udp ? "udp" : setting.text);
    const bool none = setting.key == "local_lock" && setting.value == "none";
    if (row != nullptr && !row->consequence.empty() && row->has_effect(major) && !none)
      lines.emplace_back(row->consequence);
  }
  return lines;
}

} // namespace sharefs::mounts
