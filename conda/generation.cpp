#include "conda/generation.hpp"

#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <map>

namespace sharefs::conda {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* k_generations = ".generations";
constexpr std::size_t k_random_letters = 6;
/// The largest number and time that a record may have: far beyond real ones, and sums of them do not overflow.
constexpr std::uint64_t k_most = 1ULL << 50U;
constexpr std::int64_t k_latest = 1LL << 40U;

/// Bytes that are kept of a command or a message, and of a name.
constexpr std::size_t k_longest_words = 16'384, k_longest_name = 255;

constexpr std::string_view k_backup_mark = ".sharefs-backup-";
constexpr std::string_view k_stamp_shape = "00000000-000000"; // a 0 stands for any digit

bool is_stamp(std::string_view text) {
  return std::ranges::equal(text, k_stamp_shape,
                            [](char c, char shape) { return shape == '0' ? c >= '0' && c <= '9' : c == shape; });
}

/// Returns the first `most` bytes of `text` as UTF-8 without control characters, so that a terminal can show them.
std::string sanitize(std::string_view text, std::size_t most = k_longest_name) {
  auto words = to_utf8(text.substr(0, most));
  std::ranges::replace_if(words, is_control, ' ');
  return words;
}

/// True if the original can come from a share, which keeps it in the same directory under the name of a backup.
bool may_be_of_share(const Original& original) {
  const auto names_one_place = [](const std::string& path) {
    return path.starts_with('/') && path.find('\0') == std::string::npos && normalize_path(path) == path;
  };
  return names_one_place(original.path) && names_one_place(original.kept) &&
         parent_path(original.kept) == parent_path(original.path) &&
         newest_backup({base_name(original.kept)}, base_name(original.path)) == base_name(original.kept);
}

std::string version_of(const Package& package) {
  return package.build.empty() ? package.version : package.version + " " + package.build;
}

} // namespace

std::string backup_name(std::string_view name, std::chrono::system_clock::time_point when) {
  const auto utc = fmt::gmtime(std::chrono::system_clock::to_time_t(when));
  return fmt::format("{}{}{:%Y%m%d-%H%M%S}", name, k_backup_mark, utc);
}

std::string newest_backup(const std::vector<std::string>& entries, std::string_view name) {
  const auto prefix = std::string(name) + std::string(k_backup_mark);
  std::string newest;
  for (const auto& entry : entries)
    if (entry.starts_with(prefix) && is_stamp(std::string_view(entry).substr(prefix.size())))
      newest = std::max(newest, entry); // stamps sort by time
  return newest;
}

std::vector<tree::AddedFile> protection_marks(const std::string& name, const std::string& python) {
  const auto message = fmt::format("shared by sharefs: change it by `sharefs conda update {} -- COMMAND`", name);
  std::vector<tree::AddedFile> marks{{"conda-meta/frozen", fmt::format("{{\"message\": \"{}\"}}\n", message)}};
  if (const auto parts = split(python, '.'); parts.size() >= 2)
    marks.push_back({fmt::format("lib/python{}.{}/EXTERNALLY-MANAGED", parts[0], parts[1]),
                     fmt::format("[externally-managed]\nError={}\n", message)});
  return marks;
}

std::string format_generation(const Generation& generation) {
  auto record = generation;
  for (auto* words : {&record.command, &record.message})
    *words = words->substr(0, k_longest_words);
  OrderedJson json{{"sharefs", 1}};
  add_fields(json, record, JsonTexts::for_people);
  return json.dump(1) + "\n";
}

Result<Generation> parse_generation(std::string_view text) {
  // There are five values for each package, and fourteen members of the record itself.
  TRY_ASSIGN(const auto json,
             read_json<OrderedJson>(text, {.bytes = k_largest_record, .depth = 8, .values = 200'000, .members = 100}));
  const auto version = json.is_object() ? json.find("sharefs") : json.end();
  if (version != json.end() && *version != 1)
    return fail(ErrorCode::unsupported, "was written by a newer sharefs", "install the same version on all hosts");
  Generation one;
  if (version == json.end() || !json.contains("packages") || read_fields(json, one) != nullptr ||
      std::max(one.number, one.parent) > k_last_generation || one.created > k_latest ||
      std::max({one.files, one.bytes, one.own_bytes}) > k_most)
    return fail(ErrorCode::failed, "is no record of a generation");
  for (auto* name : {&one.user, &one.host, &one.python})
    *name = sanitize(*name);
  for (auto* words : {&one.command, &one.message})
    *words = sanitize(*words, k_longest_words);
  one.prefix = sanitize(one.prefix, PATH_MAX);
  for (auto& package : one.packages)
    package = {sanitize(package.name), sanitize(package.version), sanitize(package.build), package.pip};
  if (!may_be_of_share(one.original))
    one.original = {};
  return one;
}

std::vector<PackageChange> package_changes(const std::vector<Package>& before, const std::vector<Package>& after) {
  std::map<std::string, PackageChange> changes;
  const auto change = [&](const Package& package) -> PackageChange& {
    auto& found = changes[package.name + (package.pip ? " (pip)" : "")];
    found.name = package.name;
    return found;
  };
  for (const auto& package : before)
    change(package).before = version_of(package);
  for (const auto& package : after)
    change(package).after = version_of(package);
  std::vector<PackageChange> found;
  for (auto& [name, one] : changes)
    if (one.before != one.after)
      found.push_back(std::move(one));
  return found;
}

std::string text_of(const PackageChange& change) {
  return fmt::format("{}: {} -> {}", change.name, change.before.empty() ? "-" : change.before,
                     change.after.empty() ? "-" : change.after);
}

std::string summary_of(const std::vector<PackageChange>& changes) {
  const auto added = std::ranges::count_if(changes, [](const auto& one) { return one.before.empty(); });
  const auto removed = std::ranges::count_if(changes, [](const auto& one) { return one.after.empty(); });
  const auto changed = static_cast<std::ptrdiff_t>(changes.size()) - added - removed;
  std::string text;
  for (const auto& [sign, count] : {std::pair('+', added), {'-', removed}, {'~', changed}})
    if (count > 0)
      text += fmt::format("{}{}{}", text.empty() ? "" : " ", sign, count);
  return text;
}

std::optional<Package> package_of_record(std::string_view file_name) {
  constexpr std::string_view k_json = ".json";
  if (!file_name.ends_with(k_json))
    return std::nullopt;
  file_name.remove_suffix(k_json.size());
  const auto build = file_name.rfind('-');
  const auto version = build == std::string_view::npos || build == 0 ? build : file_name.rfind('-', build - 1);
  if (version == std::string_view::npos || version == 0 || build == 0)
    return std::nullopt;
  return Package{sanitize(file_name.substr(0, version)), sanitize(file_name.substr(version + 1, build - version - 1)),
                 sanitize(file_name.substr(build + 1))};
}

std::optional<Package> package_of_distribution(std::string_view directory_name) {
  constexpr std::string_view k_info = ".dist-info";
  if (!directory_name.ends_with(k_info))
    return std::nullopt;
  directory_name.remove_suffix(k_info.size());
  const auto version = directory_name.rfind('-');
  if (version == std::string_view::npos || version == 0)
    return std::nullopt;
  return Package{sanitize(directory_name.substr(0, version)), sanitize(directory_name.substr(version + 1)), "", true};
}

std::string generation_name(unsigned number) {
  return fmt::format("{:04}", number);
}

std::optional<unsigned> generation_number(std::string_view name) {
  const auto number = parse_number<unsigned>(name);
  return number && *number > 0 && *number <= k_last_generation && name == generation_name(*number) ? number
                                                                                                   : std::nullopt;
}

std::string generations_path(const std::string& store, const std::string& environment) {
  return join_path(join_path(store, k_generations), environment);
}

std::string generation_path(const std::string& store, const std::string& environment, unsigned number) {
  return join_path(generations_path(store, environment), generation_name(number));
}

std::string generation_link(const std::string& environment, unsigned number) {
  return fmt::format("{}/{}/{}", k_generations, environment, generation_name(number));
}

std::optional<unsigned> linked_generation(const std::string& environment, std::string_view link_text) {
  const auto slash = link_text.rfind('/');
  const auto number = slash == std::string_view::npos ? std::nullopt : generation_number(link_text.substr(slash + 1));
  return number && link_text == generation_link(environment, *number) ? number : std::nullopt;
}

std::optional<unsigned> unfinished_generation(std::string_view name) {
  constexpr std::size_t k_mark = 4, k_digits = 4;
  if (name.size() != k_mark + k_digits + 1 + k_random_letters || name[k_mark + k_digits] != '.' ||
      (!name.starts_with("new-") && !name.starts_with("old-")))
    return std::nullopt;
  return generation_number(name.substr(k_mark, k_digits));
}

std::optional<unsigned> used_number(std::string_view name) {
  const auto unfinished = unfinished_generation(name);
  return unfinished ? unfinished : generation_number(name.substr(0, name.find('.')));
}

sys::Note use_note(const std::string& host, int pid, std::uint64_t start) {
  return {k_generations, "uses", fmt::format("{}.{}.{}", host, pid, start)};
}

std::string use_name(const Use& use) {
  return use_note(use.host, use.pid, use.start).name + "." + generation_name(use.generation);
}

std::optional<Use> parse_use(std::string_view name) {
  std::array<std::string_view, 3> numbers; // read from the end, since a host name may have dots
  for (auto& number : numbers) {
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos)
      return std::nullopt;
    number = name.substr(dot + 1);
    name = name.substr(0, dot);
  }
  const auto generation = generation_number(numbers[0]);
  const auto start = parse_number<std::uint64_t>(numbers[1]);
  const auto pid = parse_number<int>(numbers[2]);
  if (!generation || !start || !pid || *pid <= 0 || name.empty())
    return std::nullopt;
  return Use{sanitize(name), *pid, *start, *generation};
}

bool is_fresh(const Use& use, std::int64_t now) {
  constexpr std::int64_t k_day = 86'400;
  return use.noted <= now + k_day && use.noted > now - k_note_days * k_day;
}

std::string text_of(const Use& use) {
  return fmt::format("process {} on {}{}", use.pid, use.host, use.user.empty() ? "" : ", by a note of " + use.user);
}

std::uint32_t uses_mode(std::uint32_t store_mode) {
  std::uint32_t mode = 01700;
  for (const unsigned shift : {0U, 3U})
    if ((store_mode >> shift & 05U) == 05U)
      mode |= 07U << shift;
  return mode;
}

} // namespace sharefs::conda
