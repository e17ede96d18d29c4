#include "conda/generation.hpp"

#include "conda/backup_name.hpp"

#include "base/json.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <fmt/format.h>
#include <map>

namespace sharefs::conda {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* k_generations = ".generations";
constexpr std::size_t k_random_letters = 6;
/// Of a record, far beyond every real one: what is computed with these does not overflow.
constexpr std::uint64_t k_most = 1ULL << 50U, k_latest = 1ULL << 40U;

template <class Number> std::optional<Number> number_in(std::string_view digits) {
  Number number{};
  const auto* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  return !digits.empty() && error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

/// What is kept of a command or a message, and of a name.
constexpr std::size_t k_longest_words = 16'384, k_longest_name = 255;

/// `text` as it is, or without what a terminal would obey, and what nobody would read.
std::string plain(std::string_view text, std::size_t most = k_longest_name) {
  auto words = to_utf8(text.substr(0, most));
  std::ranges::replace_if(words, is_control, ' ');
  return words;
}

std::string version_of(const Package& package) {
  return package.build.empty() ? package.version : package.version + " " + package.build;
}

} // namespace

std::vector<Mark> protection_marks(const std::string& name, const std::string& python) {
  const auto message = fmt::format("shared by sharefs: change it by `sharefs conda update {} -- COMMAND`", name);
  std::vector<Mark> marks{{"conda-meta/frozen", fmt::format("{{\"message\": \"{}\"}}\n", message)}};
  if (const auto parts = split(python, '.'); parts.size() >= 2)
    marks.push_back({fmt::format("lib/python{}.{}/EXTERNALLY-MANAGED", parts[0], parts[1]),
                     fmt::format("[externally-managed]\nError={}\n", message)});
  return marks;
}

std::string format_generation(const Generation& generation) {
  auto packages = OrderedJson::array();
  for (const auto& package : generation.packages)
    packages.push_back({{"name", to_utf8(package.name)},
                        {"version", to_utf8(package.version)},
                        {"build", to_utf8(package.build)},
                        {"pip", package.pip}});
  const OrderedJson json{{"sharefs", 1},
                         {"number", generation.number},
                         {"parent", generation.parent},
                         {"created", generation.created},
                         {"user", to_utf8(generation.user)},
                         {"host", to_utf8(generation.host)},
                         {"command", to_utf8(generation.command.substr(0, k_longest_words))},
                         {"message", to_utf8(generation.message.substr(0, k_longest_words))},
                         {"prefix", to_utf8(generation.prefix)},
                         {"python", to_utf8(generation.python)},
                         {"files", generation.files},
                         {"bytes", generation.bytes},
                         {"own_bytes", generation.own_bytes},
                         {"no_guard", generation.no_guard},
                         {"packages", std::move(packages)}};
  return json.dump(1) + "\n";
}

Result<Generation> parse_generation(std::string_view text) {
  // Five values for each package, and fourteen members of the record itself.
  const auto json = read_json(text, {.bytes = k_largest_record, .depth = 8, .values = 200'000, .members = 100});
  if (!json)
    return fail(json.error());
  Generation one;
  try {
    if (json->at("sharefs") != 1)
      return fail(ErrorCode::unsupported, "was written by a newer sharefs", "install the same version on all hosts");
    std::uint64_t created = 0;
    const bool sound =
        number_from(json->at("number"), k_last_generation, one.number) &&
        number_from(json->at("parent"), k_last_generation, one.parent) &&
        number_from(json->at("created"), k_latest, created) && number_from(json->at("files"), k_most, one.files) &&
        number_from(json->at("bytes"), k_most, one.bytes) && number_from(json->at("own_bytes"), k_most, one.own_bytes);
    if (!sound)
      return fail(ErrorCode::failed, "is no record of a generation");
    one.created = static_cast<std::int64_t>(created);
    const auto words = [](const nlohmann::json& value, std::size_t most = k_longest_name) {
      return plain(value.get_ref<const std::string&>(), most);
    };
    one.user = words(json->at("user"));
    one.host = words(json->at("host"));
    one.command = words(json->at("command"), k_longest_words);
    one.message = words(json->at("message"), k_longest_words);
    one.prefix = words(json->at("prefix"), PATH_MAX);
    one.python = words(json->at("python"));
    one.no_guard = json->value("no_guard", false); // older records have none
    for (const auto& package : json->at("packages"))
      one.packages.push_back({words(package.at("name")), words(package.at("version")), words(package.at("build")),
                              package.at("pip").get<bool>()});
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::failed, "is no record of a generation");
  }
  return one;
}

std::string format_original(const Original& original) {
  const OrderedJson json{{"path", original.path}, {"kept", original.kept}, {"inode", original.inode}};
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<Original> parse_original(std::string_view text) {
  const auto json = read_json(text, {.bytes = k_largest_note, .depth = 1});
  Original original;
  try {
    if (!json || !number_from(json->at("inode"), UINT64_MAX, original.inode))
      return fail(ErrorCode::failed, "is no note of an original");
    json->at("path").get_to(original.path);
    json->at("kept").get_to(original.kept);
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::failed, "is no note of an original");
  }
  const auto names_one_place = [](const std::string& path) {
    return path.starts_with('/') && path.find('\0') == std::string::npos && normalize_path(path) == path;
  };
  const bool beside = names_one_place(original.path) && names_one_place(original.kept) &&
                      parent_path(original.kept) == parent_path(original.path) &&
                      newest_backup({base_name(original.kept)}, base_name(original.path)) == base_name(original.kept);
  return beside ? Result<Original>(original) : fail(ErrorCode::failed, "is no note of an original");
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
  return Package{plain(file_name.substr(0, version)), plain(file_name.substr(version + 1, build - version - 1)),
                 plain(file_name.substr(build + 1))};
}

std::optional<Package> package_of_distribution(std::string_view directory_name) {
  constexpr std::string_view k_info = ".dist-info";
  if (!directory_name.ends_with(k_info))
    return std::nullopt;
  directory_name.remove_suffix(k_info.size());
  const auto version = directory_name.rfind('-');
  if (version == std::string_view::npos || version == 0)
    return std::nullopt;
  return Package{plain(directory_name.substr(0, version)), plain(directory_name.substr(version + 1)), "", true};
}

std::string generation_name(unsigned number) {
  return fmt::format("{:04}", number);
}

std::optional<unsigned> generation_number(std::string_view name) {
  const auto number = number_in<unsigned>(name);
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

std::string original_name(unsigned number) {
  return generation_name(number) + ".original";
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
  std::array<std::string_view, 3> numbers; // a host name may have dots
  for (auto& number : numbers) {
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos)
      return std::nullopt;
    number = name.substr(dot + 1);
    name = name.substr(0, dot);
  }
  const auto generation = generation_number(numbers[0]);
  const auto start = number_in<std::uint64_t>(numbers[1]);
  const auto pid = number_in<int>(numbers[2]);
  if (!generation || !start || !pid || *pid <= 0 || name.empty())
    return std::nullopt;
  return Use{plain(name), *pid, *start, *generation};
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
