#include "mounts/mount_point.hpp"

#include "base/path.hpp"

#include <algorithm>

namespace sharefs::mounts {

const std::string& name_of(const MountPoint& point) {
  return point.name.empty() ? point.target : point.name;
}

const std::string& server_of(const MountPoint& point) {
  return point.server_name.empty() ? point.server : point.server_name;
}

Diagnosis about(const MountPoint& point, Severity severity, std::string code, std::string message, std::string hint,
                std::string fix) {
  return {severity, std::move(code), name_of(point), std::move(message), std::move(hint), std::move(fix)};
}

std::vector<std::string> ancestors_and_self(const std::string& target) {
  std::vector<std::string> paths;
  for (std::string path = target; path != "/" && !path.empty(); path = parent_path(path))
    paths.push_back(path);
  std::reverse(paths.begin(), paths.end());
  return paths;
}

std::string find_outer(const std::set<std::string>& targets, const std::string& target) {
  for (std::string path = target; path != "/" && !path.empty();) {
    path = parent_path(path);
    if (targets.contains(path))
      return path;
  }
  return {};
}

} // namespace sharefs::mounts
