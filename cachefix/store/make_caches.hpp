#pragma once
// Making the node-local directories of caches.
#include "sys/system.hpp"

#include <map>
#include <string>

namespace sharefs::cachefix {

/// 12 hexadecimal digits of a text: the same everywhere and always.
std::string key_of(const std::string& text);
/// The name of the node-local directory that stands for a shared path.
std::string cache_key(const std::string& shared_path);

/// The user's own directory for caches, mode 0700. Error `permission` if it is somebody else's, or others may write to
/// it; `unsupported` where file locks do not exclude each other.
Result<void> make_own_directory(sys::System& system, const std::string& directory);

/// Makes node-local directories (0700, with the user's own directory above them), each with a note of the shared path
/// that it stands for, which `sharefs cache list` shows.
Result<void> make_caches(sys::System& system, const std::map<std::string, std::string>& directories);

} // namespace sharefs::cachefix
