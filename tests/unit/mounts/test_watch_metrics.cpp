#include "mounts/watch/rounds.hpp"
#include "support/catch.hpp"

#include "base/text.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using namespace sharefs::mounts::watch;
using Catch::Contains;

namespace {

Watched watched(const std::string& name, const std::string& target, const std::string& server,
                Health health = Health::healthy) {
  Watched mount;
  mount.point = {.name = name, .server = server + ".lan", .target = target, .server_name = server};
  mount.state.emplace();
  mount.state->health = health;
  mount.problem = problem_of(*mount.state);
  return mount;
}

DaemonFacts some_figures() {
  DaemonFacts figures;
  figures.version = "1.2.3";
  figures.now = std::chrono::system_clock::time_point(std::chrono::milliseconds(1'700'000'000'500));
  return figures;
}

} // namespace

TEST_CASE("format_metrics: the whole file", "[metrics]") {
  WatchedFacts seen{
      {watched("share", "/data/share", "storage1"), watched("old", "/old", "storage2", Health::stale), {}}, {}, {}};
  seen.mounts[0].state->answer.emplace().space = {
      .latency = std::chrono::microseconds(1500), .size_bytes = 4096, .free_bytes = 1024};
  seen.mounts[1].state->moved_to = "10.0.0.2";
  seen.servers = {{"storage1.lan", true}, {"storage2.lan", false}};
  seen.recoveries = {{{"old", "failed"}, 2}};
  auto figures = some_figures();
  figures.rounds = 7;
  figures.round_took = std::chrono::milliseconds(12);
  CHECK(format_metrics(figures, seen) == R"(# HELP sharefs_build_info 1, with the version of sharefs.
# TYPE sharefs_build_info gauge
sharefs_build_info{version="1.2.3"} 1
# HELP sharefs_mount_up Whether the mount is there and works.
# TYPE sharefs_mount_up gauge
sharefs_mount_up{mount="share",target="/data/share",server="storage1"} 1
sharefs_mount_up{mount="old",target="/old",server="storage2"} 0
# HELP sharefs_mount_state 1 for the state that the mount is in, as sharefs status calls it.
# TYPE sharefs_mount_state gauge
sharefs_mount_state{mount="share",target="/data/share",server="storage1",state="healthy"} 1
sharefs_mount_state{mount="old",target="/old",server="storage2",state="stale"} 1
# HELP sharefs_mount_moved Whether the server's name leads to another address than the mount uses.
# TYPE sharefs_mount_moved gauge
sharefs_mount_moved{mount="share",target="/data/share",server="storage1"} 0
sharefs_mount_moved{mount="old",target="/old",server="storage2"} 1
# HELP sharefs_mount_latency_seconds How long the server took to answer the last look.
# TYPE sharefs_mount_latency_seconds gauge
sharefs_mount_latency_seconds{mount="share",target="/data/share",server="storage1"} 0.0015
# HELP sharefs_mount_size_bytes Size of the file system behind the mount.
# TYPE sharefs_mount_size_bytes gauge
sharefs_mount_size_bytes{mount="share",target="/data/share",server="storage1"} 4096
# HELP sharefs_mount_free_bytes Space of it that users may still fill.
# TYPE sharefs_mount_free_bytes gauge
sharefs_mount_free_bytes{mount="share",target="/data/share",server="storage1"} 1024
# HELP sharefs_server_up Whether the NFS server answers.
# TYPE sharefs_server_up gauge
sharefs_server_up{server="storage1"} 1
sharefs_server_up{server="storage2"} 0
# HELP sharefs_recoveries_total Recoveries that sharefs watch has begun, by how they ended.
# TYPE sharefs_recoveries_total counter
sharefs_recoveries_total{mount="old",result="failed"} 2
# HELP sharefs_watch_rounds_total Rounds in which sharefs watch looked at the mounts.
# TYPE sharefs_watch_rounds_total counter
sharefs_watch_rounds_total 7
# HELP sharefs_watch_round_duration_seconds How long the last round took.
# TYPE sharefs_watch_round_duration_seconds gauge
sharefs_watch_round_duration_seconds 0.012
# HELP sharefs_watch_last_round_timestamp_seconds When the last round ended.
# TYPE sharefs_watch_last_round_timestamp_seconds gauge
sharefs_watch_last_round_timestamp_seconds 1700000000.5
# HELP sharefs_watch_config_valid Whether sharefs.yaml could be read when it was read last.
# TYPE sharefs_watch_config_valid gauge
sharefs_watch_config_valid 1
)");
}

TEST_CASE("format_metrics: two NFS servers of one host, at two ports", "[metrics]") {
  WatchedFacts seen{{watched("a", "/a", "s"), watched("b", "/b", "s")}, {}, {}};
  seen.mounts[1].point.options = parse_options({"port=20490"});
  seen.servers = {{"s.lan", true}, {"s.lan port 20490", false}};
  const auto text = format_metrics(some_figures(), seen);
  CHECK_THAT(text, Contains("sharefs_server_up{server=\"s\"} 1\n"));
  CHECK_THAT(text, Contains("sharefs_server_up{server=\"s\",port=\"20490\"} 0\n"));
}

TEST_CASE("format_metrics: no label is invalid, and no series stands twice", "[metrics]") {
  const std::string name = "a\"b\\c", target = "/x\ny\t\xff\xc3\xbc";
  const WatchedFacts seen{
      {watched(name, target, "s"), watched(name, target, "s"), watched("rtl", "/\xe2\x80\xae", "s")}, {}, {}};
  const auto text = format_metrics(some_figures(), seen);
  CHECK(sharefs::is_utf8(text));
  CHECK_THAT(text, Contains(R"(sharefs_mount_up{mount="a\"b\\c",target="/x\\ny\\t\\377ü",server="s"} 1)"
                            "\n"));
  CHECK_THAT(text, Contains(R"(target="/\\342\\200\\256")"));
  const auto first = text.find("sharefs_mount_up{mount=\"a");
  CHECK(text.find("sharefs_mount_up{mount=\"a", first + 1) == std::string::npos);
}
