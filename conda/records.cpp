#include "conda/records.hpp"

#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "base/visible.hpp"
#include "conda/image.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

namespace sharefs::conda {

namespace {

using Json = nlohmann::json;

constexpr std::size_t k_longest_path = 4096;
constexpr std::size_t k_longest_placeholder = 1024;

/// Parses JSON with limits: a file of a record usually has ten values.
Result<Json> parsed(std::string_view text) {
  return read_json(text, {.bytes = k_record_limit, .values = 10 * k_most_recorded});
}

/// True for a path that leads only downwards, so that a record cannot name a file outside of its environment.
bool leads_down(std::string_view path) {
  const auto is_no_name = [](const auto& part) {
    const std::string_view name(part.begin(), part.end());
    return name.empty() || name == "." || name == "..";
  };
  return path.size() <= k_longest_path && path.find('\0') == std::string_view::npos &&
         std::ranges::none_of(std::views::split(path, '/'), is_no_name) && !path.empty();
}

constexpr std::size_t k_digits = 64; ///< of a checksum

std::string checksum_in(const Json& object, const char* key) {
  auto text = lower_case(text_in(object, key));
  return is_hash(text) ? text : std::string();
}

/// Converts a checksum in URL-safe base64 without padding to hexadecimal digits, as other records have them; empty if
/// it is none.
std::string hexadecimal_of(std::string base64) {
  std::ranges::replace(base64, '-', '+');
  std::ranges::replace(base64, '_', '/');
  std::string digits;
  for (const char byte : bytes_from_json({{"base64", base64}}).value_or(""))
    digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return is_hash(digits) ? digits : "";
}

PathType type_of(const std::string& text) {
  static const std::map<std::string, PathType, std::less<>> k_types{
      {"hardlink", PathType::hardlink},
      {"softlink", PathType::softlink},
      {"directory", PathType::directory},
      {"pyc_file", PathType::pyc},
      {"unix_python_entry_point", PathType::entry_point},
      {"windows_python_entry_point_script", PathType::entry_point},
      {"windows_python_entry_point_exe", PathType::entry_point}};
  const auto found = k_types.find(text);
  return text.empty() ? PathType::hardlink : found == k_types.end() ? PathType::other : found->second;
}

void read_placeholder(const Json& entry, RecordedFile& file) {
  const auto& mode = text_in(entry, "file_mode");
  const auto& placeholder = text_in(entry, "prefix_placeholder");
  if ((mode != "text" && mode != "binary") || !placeholder.starts_with('/') ||
      placeholder.size() > k_longest_placeholder)
    return;
  file.mode = mode == "text" ? FileMode::text : FileMode::binary;
  file.placeholder = placeholder;
}

tl::unexpected<Error> bad_path(const std::string& path) {
  return fail(ErrorCode::failed,
              "names the path `" + fit_width(visible(path), 80) + "`, which does not lie below a prefix");
}

const Json* list_in(const Json& object, const char* key) {
  const auto& list = member(object, key);
  return list.is_array() ? &list : nullptr;
}

/// Returns Python's directory of packages, "lib/python3.11/site-packages/", from the first installed file in it; or
/// empty.
std::string site_packages(const std::vector<std::string>& installed) {
  constexpr std::string_view k_name = "/site-packages/";
  for (const auto& path : installed)
    if (const auto at = path.find(k_name); at != std::string::npos && path.starts_with("lib/python"))
      return path.substr(0, at + k_name.size());
  return "";
}

/// Returns the path where a file of a package for any Python (`noarch: python`) is installed. Only `paths_data` of
/// conda's records has the path in the package instead (conda core/path_actions.py, common/path
/// get_python_noarch_target_path).
std::string installed_path(const std::string& path, const std::string& site_packages) {
  constexpr std::string_view k_modules = "site-packages/";
  constexpr std::string_view k_programs = "python-scripts/";
  if (path.starts_with(k_modules) && !site_packages.empty())
    return site_packages + path.substr(k_modules.size());
  return path.starts_with(k_programs) ? "bin/" + path.substr(k_programs.size()) : path;
}

} // namespace

Result<Record> parse_record(std::string_view text) {
  TRY_ASSIGN(const auto json, parsed(text));
  Record record;
  record.name = text_in(json, "name");
  const auto* files = list_in(json, "files");
  const auto* paths = list_in(member(json, "paths_data"), "paths");
  if (record.name.empty() || (files == nullptr && paths == nullptr))
    return fail(ErrorCode::failed, "is no record of a package");
  record.python_noarch = text_in(json, "noarch") == "python";
  record.package = text_in(json, "extracted_package_dir");
  if ((files != nullptr && files->size() > k_most_recorded) || (paths != nullptr && paths->size() > k_most_recorded))
    return fail(ErrorCode::failed, fmt::format("names more than {} files", k_most_recorded));
  std::vector<std::string> listed;
  for (std::size_t i = 0; files != nullptr && i < files->size(); ++i) {
    listed.push_back((*files)[i].is_string() ? (*files)[i].get<std::string>() : std::string());
    if (!leads_down(listed.back()))
      return bad_path(listed.back());
  }
  const auto modules = site_packages(listed);
  std::unordered_set<std::string> known;
  for (std::size_t i = 0; paths != nullptr && i < paths->size(); ++i) {
    const auto& entry = (*paths)[i];
    RecordedFile file;
    file.path = text_in(entry, "_path");
    if (!leads_down(file.path))
      return bad_path(file.path);
    if (record.python_noarch)
      file.path = installed_path(file.path, modules);
    file.type = type_of(text_in(entry, "path_type"));
    file.sha256 = checksum_in(entry, "sha256");
    file.sha256_in_prefix = checksum_in(entry, "sha256_in_prefix");
    read_placeholder(entry, file);
    if (const auto& size = member(entry, "size_in_bytes"); size.is_number_unsigned())
      file.size = size.get<std::uint64_t>();
    if (known.insert(file.path).second)
      record.files.push_back(std::move(file));
  }
  for (const auto& path : listed)
    if (known.insert(path).second)
      record.files.push_back({.path = path, .type = path.ends_with(".pyc") ? PathType::pyc : PathType::hardlink});
  return record;
}

Result<Record> parse_distribution(std::string_view text, const std::string& site_packages) {
  constexpr std::string_view k_sha256 = "sha256=";
  Record record;
  for (const auto& row : split_lines(text)) { // paths with a comma would be in quotes, but the guard has none
    const auto cells = split(std::string(row), ',');
    if (cells.size() != 3)
      continue;
    RecordedFile file{.path = join_path(site_packages, cells[0])};
    if (!leads_down(file.path) || record.files.size() == k_most_recorded)
      return bad_path(file.path);
    if (cells[1].starts_with(k_sha256)) // the row of RECORD itself has none
      file.sha256 = hexadecimal_of(cells[1].substr(k_sha256.size()));
    record.files.push_back(std::move(file));
  }
  return record;
}

void add_placeholders(Record& record, std::string_view paths_json) {
  const auto json = parsed(paths_json);
  const auto* paths = json ? list_in(*json, "paths") : nullptr;
  if (paths == nullptr)
    return;
  std::vector<std::string> installed;
  for (const auto& file : record.files)
    installed.push_back(file.path);
  const auto modules = record.python_noarch ? site_packages(installed) : "";
  std::unordered_map<std::string, const Json*> by_path;
  for (const auto& entry : *paths)
    if (entry.is_object() && entry.contains("prefix_placeholder"))
      by_path.emplace(record.python_noarch ? installed_path(text_in(entry, "_path"), modules) : text_in(entry, "_path"),
                      &entry);
  for (auto& file : record.files)
    if (const auto found = by_path.find(file.path);
        found != by_path.end() && !file.mode && checksum_in(*found->second, "sha256") == file.sha256)
      read_placeholder(*found->second, file);
}

std::optional<Edits> checksum_edits(const Record& record, std::string_view json,
                                    const std::vector<NewChecksum>& changes) {
  std::unordered_map<std::string, std::string> wanted; // by checksum, since files of equal content change alike
  std::unordered_map<std::string, std::string> by_path;
  for (const auto& change : changes) {
    wanted.emplace(change.before, change.after);
    by_path.emplace(change.path, change.after);
  }
  for (const auto& file : record.files)
    for (const auto* checksum : {&file.sha256, &file.sha256_in_prefix}) {
      const auto changed = checksum == &file.installed() ? by_path.find(file.path) : by_path.end();
      const auto found = wanted.find(*checksum);
      if ((found == wanted.end()) != (changed == by_path.end()) ||
          (found != wanted.end() && found->second != changed->second))
        return std::nullopt;
    }
  // A digit or letter that is written as an escape would not be found in the text.
  constexpr std::string_view k_escape = "\\u00";
  for (auto at = json.find(k_escape); at != std::string_view::npos; at = json.find(k_escape, at + 1))
    if (const auto next = json.substr(at + k_escape.size(), 1); next >= "3" && next <= "7")
      return std::nullopt;
  // The text is searched for keys in quotes; in a JSON string quotes are escaped, so such a match is a key or a value.
  constexpr std::string_view k_key = "\"sha256";
  Edits edits;
  for (auto at = json.find(k_key); at != std::string_view::npos; at = json.find(k_key, at)) {
    at += k_key.size();
    const auto end = json.substr(at, std::string_view("_in_prefix").size()) == "_in_prefix" ? at + 10 : at;
    const auto colon = json.substr(end, 1) == "\"" ? json.find_first_not_of(" \t\r\n", end + 1) : end;
    const auto value = json.substr(std::min(colon, json.size()), 1) == ":"
                           ? json.find_first_not_of(" \t\r\n", colon + 1)
                           : std::string_view::npos;
    if (value == std::string_view::npos || json[value] != '"')
      continue;
    const auto digits = json.substr(value + 1, k_digits);
    if (const auto found = wanted.find(lower_case(digits)); found != wanted.end())
      edits.push_back({value + 1, std::string(digits), found->second});
  }
  return edits;
}

} // namespace sharefs::conda
