#pragma once
// Private to plan: the way down a directory tree, on descriptors, for what is done to all that lies in it. In a child.
#include "base/result.hpp"
#include "sys/process/fd.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <string>

namespace sharefs::plan {

/// What lies in the directory `parent` on the same mount, and is no link: EXDEV for what is mounted there, be it of the
/// same file system (a bind mount has the same device number).
sys::Fd open_below(int parent, const char* name, int flags = O_RDONLY | O_DIRECTORY);

/// Calls `visit` for each name in the directory but `.` and `..`, until one of them fails. `path`: for messages.
using Visit = std::function<Result<void>(int directory, const dirent& entry)>;
Result<void> for_each_name(sys::Fd directory, const std::string& path, const Visit& visit);

} // namespace sharefs::plan
