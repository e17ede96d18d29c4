#include "conda/backup_name.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace sharefs::conda {

namespace {

constexpr std::string_view k_backup_mark = ".sharefs-backup-";
constexpr std::string_view k_stamp_shape = "00000000-000000"; // a 0 stands for any digit

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_stamp(std::string_view text) {
  return std::ranges::equal(text, k_stamp_shape,
                            [](char c, char shape) { return shape == '0' ? is_digit(c) : c == shape; });
}

} // namespace

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
