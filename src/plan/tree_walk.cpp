#include "plan/tree_walk.hpp"

#include <cerrno>

namespace sharefs::plan {

Result<void> for_each_name(sys::Fd directory, const std::string& path, const Visit& visit) {
  Result<void> visited;
  const int error = sys::for_each_name(std::move(directory), [&](int here, const dirent& entry) {
    visited = visit(here, entry);
    return visited ? 0 : ECANCELED;
  });
  return !visited || error == 0 ? visited : fail(errno_error(error, path));
}

} // namespace sharefs::plan
