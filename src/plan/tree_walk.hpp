#pragma once
// Private to plan: the names in a directory, for what is done to all that lies in it. In a child.
#include "base/result.hpp"
#include "sys/fs/walk.hpp"

#include <dirent.h>
#include <functional>
#include <string>

namespace sharefs::plan {

/// Calls `visit` for each name in the directory but `.` and `..`, until one of them fails. `path`: for messages.
using Visit = std::function<Result<void>(int directory, const dirent& entry)>;
Result<void> for_each_name(sys::Fd directory, const std::string& path, const Visit& visit);

} // namespace sharefs::plan
