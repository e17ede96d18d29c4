#include "watch/metrics.hpp"

#include "base/visible.hpp"

#include <fmt/format.h>
#include <set>

namespace sharefs::watch {

namespace {

/// Prometheus knows three escapes, and one label that is not UTF-8 makes it drop the whole file (expfmt): other bytes
/// become octal first, as ls(1) and mountinfo write them.
std::string label_value(std::string_view text) {
  std::string escaped;
  for (const char byte : visible(text)) {
    if (byte == '\\' || byte == '"')
      escaped += '\\';
    escaped += byte;
  }
  return escaped;
}

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

class Writer {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    m_name = name;
    m_text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  void sample(const Labels& labels, double value) {
    std::string list;
    for (const auto& [name, text] : labels)
      list += fmt::format("{}{}=\"{}\"", list.empty() ? "" : ",", name, label_value(text));
    auto series = m_name + (list.empty() ? "" : "{" + list + "}");
    if (m_seen.insert(series).second) // two of the same make the whole file invalid
      m_text += fmt::format("{} {}\n", series, value);
  }
  [[nodiscard]] std::string text() && { return std::move(m_text); }

 private:
  std::string m_name, m_text;
  std::set<std::string> m_seen;
};

Labels labels_of(const MountFigures& mount) {
  return {{"mount", mount.name}, {"target", mount.target}, {"server", mount.server}};
}

void write_mounts(Writer& out, const std::vector<MountFigures>& mounts) {
  out.family("sharefs_mount_up", "gauge", "Whether the mount is there and works.");
  for (const auto& mount : mounts)
    out.sample(labels_of(mount), mount.well ? 1 : 0);
  out.family("sharefs_mount_state", "gauge", "1 for the state that the mount is in, as sharefs status calls it.");
  for (const auto& mount : mounts) {
    auto labels = labels_of(mount);
    labels.emplace_back("state", mount.state);
    out.sample(labels, 1);
  }
  out.family("sharefs_mount_moved", "gauge", "Whether the server's name leads to another address than the mount uses.");
  for (const auto& mount : mounts)
    out.sample(labels_of(mount), mount.moved ? 1 : 0);
  out.family("sharefs_mount_latency_seconds", "gauge", "How long the server took to answer the last look.");
  for (const auto& mount : mounts)
    if (mount.latency)
      out.sample(labels_of(mount), std::chrono::duration<double>(*mount.latency).count());
  out.family("sharefs_mount_size_bytes", "gauge", "Size of the file system behind the mount.");
  for (const auto& mount : mounts)
    if (mount.latency)
      out.sample(labels_of(mount), static_cast<double>(mount.size_bytes));
  out.family("sharefs_mount_free_bytes", "gauge", "Space of it that users may still fill.");
  for (const auto& mount : mounts)
    if (mount.latency)
      out.sample(labels_of(mount), static_cast<double>(mount.free_bytes));
}

} // namespace

std::string format_metrics(const Figures& figures) {
  Writer out;
  out.family("sharefs_build_info", "gauge", "1, with the version of sharefs.");
  out.sample({{"version", figures.version}}, 1);
  write_mounts(out, figures.mounts);
  out.family("sharefs_server_up", "gauge", "Whether the NFS server answers.");
  for (const auto& [server, up] : figures.servers)
    out.sample({{"server", server}}, up ? 1 : 0);
  out.family("sharefs_recoveries_total", "counter", "Recoveries that sharefs watch has begun, by how they ended.");
  for (const auto& [key, count] : figures.recoveries)
    out.sample({{"mount", key.first}, {"result", key.second}}, static_cast<double>(count));
  out.family("sharefs_watch_rounds_total", "counter", "Rounds in which sharefs watch looked at the mounts.");
  out.sample({}, static_cast<double>(figures.rounds));
  out.family("sharefs_watch_round_duration_seconds", "gauge", "How long the last round took.");
  out.sample({}, figures.round_took.count());
  out.family("sharefs_watch_last_round_timestamp_seconds", "gauge", "When the last round ended.");
  out.sample({}, std::chrono::duration<double>(figures.now.time_since_epoch()).count());
  out.family("sharefs_watch_config_valid", "gauge", "Whether sharefs.yaml could be read when it was read last.");
  out.sample({}, figures.config_valid ? 1 : 0);
  return std::move(out).text();
}

} // namespace sharefs::watch
