#pragma once
// The guard of `sharefs run` in a shared environment (`caches.guard: always`): the wheel `sharefs-guard`, as pip would
// install it. It is added while a generation is made, so that launches without `sharefs run` are guarded, too.
#include "conda/generation.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::conda {

/// Its package, and the name of its distribution.
inline constexpr const char* k_guard_package = "sharefs_guard";
/// Its files, by their paths below site-packages. None: nothing is added.
using GuardFiles = std::vector<tree::AddedFile>;

[[nodiscard]] bool has_guard(const std::vector<Package>& packages);

/// lib/python3.11/site-packages of an environment with this version of Python. Empty: the version is not known, or the
/// guard does not work with it.
std::string guard_directory(const std::string& python);
/// Those of the names in site-packages that are records of the guard: sharefs_guard-0.1.0.dist-info.
std::vector<std::string> guard_records(const std::vector<std::string>& names);
/// The one that the files bring.
std::string record_in(const GuardFiles& guard);

/// Writes into `tree` what it does not have of the guard. `below`: the tree under it, where `tree` is only a layer; or
/// empty. True: something was written.
Result<bool> write_guard(sys::System& system, const std::string& tree, const std::string& below,
                         const std::string& directory, const GuardFiles& guard);

} // namespace sharefs::conda
