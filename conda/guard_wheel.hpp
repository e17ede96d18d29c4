#pragma once
// Adds the guard of `sharefs run` to a shared environment (`caches.guard: always`): the wheel `sharefs-guard`, as pip
// would install it. It is added while a generation is made, so that launches without `sharefs run` are guarded, too.
#include "conda/generation.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::conda {

/// The name of the guard's Python package and of its distribution.
inline constexpr const char* k_guard_package = "sharefs_guard";
/// The guard's files, by their paths below site-packages. Empty: the guard is not added.
using GuardFiles = std::vector<tree::AddedFile>;

[[nodiscard]] bool has_guard(const std::vector<Package>& packages);

/// Returns lib/python3.11/site-packages for this version of Python; empty if the version is not known, or if the guard
/// does not work with it.
std::string guard_directory(const std::string& python);
/// Returns the names in site-packages that are records of the guard, as sharefs_guard-0.1.0.dist-info.
std::vector<std::string> guard_records(const std::vector<std::string>& names);
/// Returns the name of the record in these files.
std::string record_in(const GuardFiles& guard);

/// Writes the files of the guard that `tree` does not have. `below` is the lower tree if `tree` is the upper layer of
/// an overlay, or empty. Returns true if a file was written.
Result<bool> write_guard(sys::System& system, const std::string& tree, const std::string& below,
                         const std::string& directory, const GuardFiles& guard);

} // namespace sharefs::conda
