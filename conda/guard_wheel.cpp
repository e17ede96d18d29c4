#include "conda/guard_wheel.hpp"

#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"

#include <algorithm>

namespace sharefs::conda {

namespace {

/// Makes the directory, and first removes a file of that name: a layer has a whiteout there if the directory was
/// deleted.
Result<void> make_place(sys::System& system, const std::string& path) {
  const auto entry = system.entry({.path = path});
  if (entry.kind == sys::EntryKind::unknown)
    return fail(entry.error());
  if (entry.exists() && entry.kind != sys::EntryKind::directory)
    TRY(system.files().remove(path));
  return system.files().make_directories(path);
}

} // namespace

bool has_guard(const std::vector<Package>& packages) {
  return std::ranges::find(packages, k_guard_package, &Package::name) != packages.end();
}

std::string guard_directory(const std::string& python) {
  constexpr unsigned k_oldest = 6; // Python 3.6
  const auto parts = split(python, '.');
  if (parts.size() < 2 || parts[0] != "3" || parse_number<unsigned>(parts[1]).value_or(0) < k_oldest)
    return "";
  return "lib/python3." + parts[1] + "/site-packages";
}

std::vector<std::string> guard_records(const std::vector<std::string>& names) {
  std::vector<std::string> records;
  std::ranges::copy_if(names, std::back_inserter(records), [](const std::string& name) {
    const auto package = package_of_distribution(name);
    return package && package->name == k_guard_package;
  });
  return records;
}

std::string record_in(const GuardFiles& guard) {
  for (const auto& file : guard)
    if (auto directory = file.path.substr(0, file.path.find('/')); !guard_records({directory}).empty())
      return directory;
  return "";
}

Result<bool> write_guard(sys::System& system, const std::string& tree, const std::string& below,
                         const std::string& directory, const GuardFiles& guard) {
  const auto& files = system.files();
  bool wrote = false;
  for (const auto& [name, text] : guard) {
    const auto path = join_path(join_path(tree, directory), name);
    const auto entry = system.entry({.path = path});
    const bool is_file = entry.kind == sys::EntryKind::file;
    TRY_ASSIGN(const auto there, is_file          ? files.read_if_exists(path)
                                 : entry.exists() ? Result<std::optional<std::string>>(std::nullopt)
                                 : below.empty()  ? Result<std::optional<std::string>>(std::nullopt)
                                                  : files.read_if_exists(join_path(join_path(below, directory), name)));
    if (there == text)
      continue;
    TRY(make_place(system, parent_path(path)));
    if (entry.exists()) // it may be a hard link to a file of another generation, or no file
      TRY(files.remove(path));
    TRY(files.write_if(path, std::nullopt, text, 0644));
    wrote = true;
  }
  return wrote;
}

} // namespace sharefs::conda
