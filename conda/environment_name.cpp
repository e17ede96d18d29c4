#include "conda/environment_name.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace sharefs::conda {

namespace {

constexpr std::string_view k_backup_mark = ".sharefs-backup-";
constexpr std::string_view k_stamp_shape = "00000000-000000"; // a 0 stands for any digit
constexpr std::size_t k_longest_name = 200;                   // leaves room for the backup mark in NAME_MAX

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_stamp(std::string_view text) {
  return std::ranges::equal(text, k_stamp_shape,
                            [](char c, char shape) { return shape == '0' ? is_digit(c) : c == shape; });
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

struct Rule {
  bool (*broken)(std::string_view name);
  std::string_view reason;
  std::string_view hint;
};

constexpr std::array<Rule, 6> k_rules{{
    {[](std::string_view name) { return name == "base" || name == "root"; },
     "is the conda installation itself, not an environment below `envs`",
     "clone it into an environment that can be shared: `conda create -n NAME --clone base`"},
    {[](std::string_view name) { return name.starts_with('.') || name.starts_with('-'); },
     "starts with a dot or a dash", ""},
    {[](std::string_view name) { return name.find_first_of("/\\:# ") != std::string_view::npos; },
     "has one of the characters `/ \\ : #` or a space, which conda does not allow in a name",
     "give the name only: `conda.store` is the directory that it lies in"},
    {[](std::string_view name) { return std::ranges::any_of(name, is_control) || !is_utf8(name); },
     "has control characters or is not UTF-8", ""},
    {[](std::string_view name) { return name.find(k_backup_mark) != std::string_view::npos; },
     "is the name of a backup that sharefs made", "`sharefs conda unlink` puts a backup back in its place"},
    {[](std::string_view name) { return name.size() > k_longest_name; }, "is longer than 200 bytes", ""},
}};

} // namespace

Result<void> check_environment_name(std::string_view name) {
  if (name.empty())
    return fail(ErrorCode::usage, "the name of an environment is empty");
  for (const auto& rule : k_rules)
    if (rule.broken(name))
      return fail(ErrorCode::usage, "environment `" + shell_quote(name) + "` " + std::string(rule.reason),
                  std::string(rule.hint));
  return {};
}

std::string backup_name(std::string_view name, std::chrono::system_clock::time_point when) {
  const auto seconds = std::chrono::system_clock::to_time_t(when);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> stamp{};
  const auto length = std::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S", &utc);
  return std::string(name) + std::string(k_backup_mark) + std::string(stamp.data(), length);
}

std::string newest_backup(const std::vector<std::string>& entries, std::string_view name) {
  const auto prefix = std::string(name) + std::string(k_backup_mark);
  std::string newest;
  for (const auto& entry : entries)
    if (entry.starts_with(prefix) && is_stamp(std::string_view(entry).substr(prefix.size())))
      newest = std::max(newest, entry); // the stamps sort by time
  return newest;
}

} // namespace sharefs::conda
