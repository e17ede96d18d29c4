#include "mounts/watch/rounds.hpp"

#include "base/visible.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::mounts::watch {

namespace {

/// Escapes a label. Prometheus knows three escapes only, and rejects the whole file if one label is not UTF-8 (expfmt).
/// So other bytes are first written as octal numbers, as ls(1) and mountinfo do.
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

/// Writes metrics in the text format.
class Writer {
 public:
  void add_family(std::string_view name, std::string_view type, std::string_view help) {
    m_name = name;
    m_text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  void add_sample(const Labels& labels, double value) {
    std::string list;
    for (const auto& [name, text] : labels)
      list += fmt::format("{}{}=\"{}\"", list.empty() ? "" : ",", name, label_value(text));
    auto series = m_name + (list.empty() ? "" : "{" + list + "}");
    if (m_series.insert(series).second) // two equal series make the whole file invalid
      m_text += fmt::format("{} {}\n", series, value);
  }
  [[nodiscard]] std::string text() && { return std::move(m_text); }

 private:
  std::string m_name, m_text;
  std::set<std::string> m_series;
};

Labels labels_of(const Watched& mount) {
  return {{"mount", name_of(mount.point)}, {"target", mount.point.target}, {"server", server_of(mount.point)}};
}

/// Returns the space of a mount that has answered; nullptr for others.
const sys::Space* space_of(const Watched& mount) {
  return is_good(mount.state->health) ? mount.state->space() : nullptr;
}

void write_mounts(Writer& out, const std::vector<Watched>& mounts) {
  const auto gauge = [&](std::string_view name, std::string_view help, const auto& value_of) {
    out.add_family(name, "gauge", help);
    for (const auto& mount : mounts)
      if (const std::optional<double> value = value_of(mount))
        out.add_sample(labels_of(mount), *value);
  };
  const auto of_space = [](const auto& value_of) {
    return [value_of](const Watched& mount) {
      const auto* space = space_of(mount);
      return space == nullptr ? std::nullopt : std::optional(static_cast<double>(value_of(*space)));
    };
  };
  gauge("sharefs_mount_up", "Whether the mount is there and works.",
        [](const Watched& mount) { return mount.is_well() ? 1 : 0; });
  out.add_family("sharefs_mount_state", "gauge", "1 for the state that the mount is in, as sharefs status calls it.");
  for (const auto& mount : mounts) {
    auto labels = labels_of(mount);
    labels.emplace_back("state", to_string(mount.state->health));
    out.add_sample(labels, 1);
  }
  gauge("sharefs_mount_moved", "Whether the server's name leads to another address than the mount uses.",
        [](const Watched& mount) { return mount.state->moved_to.empty() ? 0 : 1; });
  gauge("sharefs_mount_latency_seconds", "How long the server took to answer the last look.",
        of_space([](const sys::Space& space) { return std::chrono::duration<double>(space.latency).count(); }));
  gauge("sharefs_mount_size_bytes", "Size of the file system behind the mount.",
        of_space([](const sys::Space& space) { return space.size_bytes; }));
  gauge("sharefs_mount_free_bytes", "Space of it that users may still fill.",
        of_space([](const sys::Space& space) { return space.free_bytes; }));
}

void write_servers(Writer& out, const WatchedFacts& watched) {
  std::map<std::pair<std::string, std::uint16_t>, bool> by_port;
  for (const auto& mount : watched.mounts)
    if (const auto server = watched.servers.find(server_key(mount.point)); server != watched.servers.end())
      by_port[{server_of(mount.point), ports_of(mount.point).nfs}] = server->second;
  out.add_family("sharefs_server_up", "gauge", "Whether the NFS server answers.");
  for (const auto& [server, up] : by_port) {
    Labels labels{{"server", server.first}};
    const auto port = std::to_string(server.second);
    if (server.second != sys::NfsPorts().nfs)
      labels.emplace_back("port", port);
    out.add_sample(labels, up ? 1 : 0);
  }
}

} // namespace

std::string format_metrics(const DaemonFacts& daemon, const WatchedFacts& watched) {
  Writer out;
  out.add_family("sharefs_build_info", "gauge", "1, with the version of sharefs.");
  out.add_sample({{"version", daemon.version}}, 1);
  auto checked = watched.mounts;
  std::erase_if(checked, [](const Watched& mount) { return !mount.state; });
  write_mounts(out, checked);
  write_servers(out, watched);
  out.add_family("sharefs_recoveries_total", "counter", "Recoveries that sharefs watch has begun, by how they ended.");
  for (const auto& [key, count] : watched.recoveries)
    out.add_sample({{"mount", key.first}, {"result", key.second}}, static_cast<double>(count));
  out.add_family("sharefs_watch_rounds_total", "counter", "Rounds in which sharefs watch looked at the mounts.");
  out.add_sample({}, static_cast<double>(daemon.rounds));
  out.add_family("sharefs_watch_round_duration_seconds", "gauge", "How long the last round took.");
  out.add_sample({}, daemon.round_took.count());
  out.add_family("sharefs_watch_last_round_timestamp_seconds", "gauge", "When the last round ended.");
  out.add_sample({}, std::chrono::duration<double>(daemon.now.time_since_epoch()).count());
  out.add_family("sharefs_watch_config_valid", "gauge", "Whether sharefs.yaml could be read when it was read last.");
  out.add_sample({}, daemon.config_valid ? 1 : 0);
  return std::move(out).text();
}

} // namespace sharefs::mounts::watch
