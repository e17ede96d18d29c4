#include "mounts/mount_point.hpp"

#include <fmt/format.h>

namespace sharefs::mounts {

const std::string& name_of(const MountPoint& point) {
  return point.name.empty() ? point.target : point.name;
}

const std::string& server_of(const MountPoint& point) {
  return point.server_name.empty() ? point.server : point.server_name;
}

std::uint16_t port_of(const MountPoint& point) {
  const auto usual = sys::NfsPorts().nfs;
  const auto asked = parse_number<std::uint16_t>(value_of(point.options, "port"));
  // `port=0` lets the client ask the portmapper, and `proto=rdma` has a port of its own kind.
  return !asked || *asked == 0 || value_of(point.options, "proto").starts_with("rdma") ? usual : *asked;
}

std::uint16_t mountd_port_of(const MountPoint& point) {
  if (value_of(point.options, "port").empty())
    return 0;
  return parse_number<std::uint16_t>(value_of(point.options, "mountport")).value_or(0);
}

std::string server_key(const MountPoint& point) {
  const auto port = port_of(point), mountd = mountd_port_of(point);
  return point.server + (port == sys::NfsPorts().nfs ? "" : fmt::format(" port {}", port)) +
         (mountd == 0 ? "" : fmt::format(" mountport {}", mountd));
}

std::string port_word(const MountPoint& point) {
  const auto port = port_of(point), mountd = mountd_port_of(point);
  return (port == sys::NfsPorts().nfs ? "" : fmt::format("--port={} ", port)) +
         (mountd == 0 ? "" : fmt::format("--mountport={} ", mountd));
}

std::string probe_command(const MountPoint& point, const std::string& source) {
  return fmt::format("sharefs probe {}{}", port_word(point), shell_quote(source.empty() ? point.server : source));
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
