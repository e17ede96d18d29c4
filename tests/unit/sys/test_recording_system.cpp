#include "sys/recording_system.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/scripted_system.hpp"

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;

namespace {

const char* k_machine = R"({
  "identity": {"hostname": "gpu1", "boot_id": "b", "uid": 0, "gid": 0, "user": "root", "home": "/root", "pid": 7,
               "addresses": ["10.0.0.1"]},
  "now": "2026-03-04T05:06:07Z",
  "mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n",
  "users": [{"name": "alice", "uid": 1001}],
  "run": [{"argv": ["a"], "exit_code": 3, "out": {"latin1": "\u00ff\u0000"}, "err": "e", "times": 1},
          {"argv": ["a"], "timed_out": true, "unreaped": true},
          {"argv": ["none"], "error": {"code": "not_found", "message": "no `none`", "hint": "install it"}}],
  "mount": [{"target": "/d", "mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /d rw - nfs4 s:/d rw\n"}],
  "unmount": [{"target": "/d", "error": {"code": "busy", "message": "in use"}}],
  "nfs": {"srv": {"v4": true, "address": "10.0.0.9", "took_ms": 3,
                  "stages": [{"stage": "resolve", "outcome": "ok", "round_trip_us": 5, "detail": "10.0.0.9"},
                             {"stage": "nfs3", "outcome": "failed", "cause": "c", "hint": "h"}],
                  "exports": [{"directory": "/d", "clients": ["*"]}],
                  "access": [{"directory": "/d", "allowed": false, "reason": "r"}]}},
  "probe_path": {"/d": {"health": "ok", "latency_us": 12, "size_bytes": 10, "free_bytes": 5, "files": 4, "free_files": 3}},
  "inspect": {"/d": {"kind": "directory", "mode": "2775", "entries": ["a"], "uid": 1, "gid": 2, "device": 3, "inode": 4,
                     "links": 5, "mtime": 6, "size": 7},
              "/l": {"kind": "symlink", "link_target": "d", "mode": "0777"},
              "/none": {"kind": "missing", "error_number": 2},
              "/dead": {"error": {"code": "timeout", "message": "/dead: no answer"}}}
})";

/// Everything that one can ask; the answers as one text.
std::string ask_all(System& system) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += part + "\n"; };
  Command a;
  a.argv = {"a"};
  Command none;
  none.argv = {"none"};
  add(system.mounts()->format());
  for (int i = 0; i < 2; ++i) {
    const auto ran = system.run(a);
    add(std::to_string(ran->exit_code) + ran->out + ran->err + (ran->timed_out ? "t" : "") +
        (ran->unreaped ? "u" : ""));
  }
  add(system.run(none).error().message + system.run(none).error().hint);
  add(system.mount({"s:/d", "/d", "nfs", "rw", 1s}) ? "mounted" : "not mounted");
  add(system.mounts()->format());
  add(system.unmount({"/d", false, false, 1s}).error().message);
  add(system.exec({"x"}, {}).message);
  const NfsProbe nfs = system.probe_nfs({"srv", {}, 1s, true});
  for (const StageResult& stage : nfs.stages)
    add(std::string(to_string(stage.stage)) + to_string(stage.outcome) + std::to_string(stage.round_trip.count()) +
        stage.detail + stage.cause + stage.hint);
  add(nfs.host + nfs.address + nfs.exports[0].clients[0] + nfs.access[0].reason + std::to_string(nfs.took.count()));
  const PathProbe probe = system.probe_paths({{"/d", 1s, false, {}}})[0];
  add(std::to_string(probe.latency.count()) + to_string(probe.health) + std::to_string(probe.free_files));
  const auto facts = system.inspect(
      {{{"/d", false, true, 0}, {"/l", false, false, 0}, {"/l", true, false, 0}, {"/none", false, false, 0}}, 1s, {}});
  for (const PathFact& fact : *facts)
    add(fact.path + to_string(fact.kind) + fact.link_target + std::to_string(fact.mode) + std::to_string(fact.inode) +
        std::to_string(fact.mtime) + std::to_string(fact.entries.size()) + std::to_string(fact.error_number));
  add(system.inspect({{{"/d", false, false, 0}}, 1s, {}})->at(0).path);
  add(system.inspect({{{"/d", false, false, 0}, {"/dead", false, false, 0}}, 1s, {}}).error().message);
  add(system.user("alice")->home + system.user("bob").error().message);
  add(system.identity().hostname + std::to_string(system.identity().pid) + system.identity().addresses[0]);
  add(std::to_string(std::chrono::system_clock::to_time_t(system.now())));
  return text;
}

} // namespace

TEST_CASE("a recording plays back as the machine that was recorded") {
  auto machine = ScriptedSystem::from_json(k_machine, "/");
  REQUIRE(machine);
  RecordingSystem recording(**machine);
  const std::string first = ask_all(recording);
  auto again = ScriptedSystem::from_json(recording.to_json(), "/");
  if (!again)
    FAIL(again.error().message);
  // exec fails on every scripted machine; the recording keeps the words of the first.
  CHECK(ask_all(**again) == first);
  CHECK((*again)->calls() == (*machine)->calls());
}

TEST_CASE("a recording of nothing is a script too") {
  auto machine = ScriptedSystem::from_json("{}", "/");
  const RecordingSystem recording(**machine);
  CHECK(recording.to_json() == "{}\n");
  CHECK(ScriptedSystem::from_json(recording.to_json(), "/"));
}
