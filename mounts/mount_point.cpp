#include "mounts/mount_point.hpp"

#include <fmt/format.h>

namespace sharefs::mounts {

const std::string& name_of(const MountPoint& point) {
  return point.name.empty() ? point.target : point.name;
}

const std::string& server_of(const MountPoint& point) {
  return point.server_name.empty() ? point.server : point.server_name;
}

sys::NfsPorts ports_of(const MountPoint& point) {
  return sys::ports_in(format_options(point.options));
}

std::string server_key(const MountPoint& point) {
  const auto ports = ports_of(point);
  return point.server + (ports.nfs == sys::NfsPorts().nfs ? "" : fmt::format(" port {}", ports.nfs)) +
         (ports.mountd == 0 ? "" : fmt::format(" mountport {}", ports.mountd));
}

std::string probe_command(const MountPoint& point, const std::string& source) {
  return sys::probe_command(ports_of(point), source.empty() ? point.server : source);
}

Diagnosis about(const MountPoint& point, Severity severity, std::string code, std::string message, std::string hint,
                std::string fix) {
  return {severity, std::move(code), name_of(point), std::move(message), std::move(hint), std::move(fix)};
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
