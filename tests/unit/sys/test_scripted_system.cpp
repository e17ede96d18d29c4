#include "support/scripted_system.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>

using namespace sharefs;
using namespace sharefs::sys;
using test::ScriptedSystem;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<ScriptedSystem> play(const std::string& text, const std::string& root = "/") {
  auto system = ScriptedSystem::from_json(text, root);
  if (!system)
    FAIL(system.error().message);
  return std::move(*system);
}

Command scripted_command(Argv argv) {
  Command result;
  result.argv = std::move(argv);
  return result;
}

} // namespace

TEST_CASE("an empty script knows nothing, and says so") {
  const auto system = play("{}");
  const auto ran = system->run(scripted_command({"exportfs", "-ra"}));
  REQUIRE_FALSE(ran);
  CHECK(ran.error().code == ErrorCode::unsupported);
  CHECK(ran.error().message == "the script of this machine does not know `run exportfs -ra`");
  CHECK(system->mount({"s:/x", "/x", "nfs", "rw", 1s}).error().code == ErrorCode::unsupported);
  CHECK(system->unmount({"/x", true, true, {}, {}, {}}).error().code == ErrorCode::unsupported);
  CHECK(system->exec({"true"}, {}).code == ErrorCode::unsupported);
  CHECK(system->entry({"/x"}).kind == EntryKind::unknown);
  CHECK(system->entry({"/x"}).detail.find("entry /x") != std::string::npos);
  CHECK(system->user("alice").error().code == ErrorCode::not_found);
  CHECK(system->probe_nfs({"srv", {}, 1s, true}).failing()->detail.find("probe srv") != std::string::npos);
  CHECK(system->mounts()->owner_of("/x")->fs_type == "ext4");
  CHECK(system->identity().user == "root");
  CHECK(system->calls() ==
        std::vector<std::string>{"run exportfs -ra", "mount -t nfs -o rw s:/x /x", "umount -f -l /x", "exec true"});
}

TEST_CASE("what is no script is refused with the reason") {
  struct Row {
    const char* text;
    const char* reason;
  };
  const Row row = GENERATE(
      Row{"{", "parse error"}, Row{"[]", "no JSON object"}, Row{R"({"mountinof": ""})", "mountinof"},
      Row{R"({"run": [{"argv": ["x"], "exitcode": 1}]})", "exitcode"}, Row{R"({"now": "yesterday"})", "yesterday"},
      Row{R"({"entries": {"/x": {"kind": "file", "mode": "9"}}})", "9"},
      Row{R"({"entries": {"/x": {"kind": "fiel"}}})", "fiel"}, Row{R"({"entries": {"/x": {"knid": "file"}}})", "knid"},
      Row{R"({"mountinfo": "1 0"})", "mountinfo:1"}, Row{R"({"identity": {"uid": "root"}})", "type must be"});
  INFO(row.text);
  const auto system = ScriptedSystem::from_json(row.text, "/");
  REQUIRE_FALSE(system);
  CHECK(system.error().code == ErrorCode::config);
  CHECK(system.error().message.find(row.reason) != std::string::npos);
}

TEST_CASE("answers are played in order, as often as they say, and change the machine") {
  const test::TemporaryDirectory root;
  const auto system = play(R"({
    "mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n",
    "run": [{"argv": ["a"], "exit_code": 1, "err": "first", "times": 1},
            {"argv": ["a"], "out": "later"},
            {"argv": ["exportfs", "-ra"], "files": {"/var/lib/nfs/etab": "table"}},
            {"argv": ["none"], "error": {"code": "not_found", "message": "no `none`"}}],
    "mount": [{"target": "/data", "mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /data rw - nfs4 s:/d rw\n"},
              {"source": "s:/e", "error": {"code": "timeout", "message": "slow"}}],
    "unmount": [{"target": "/data", "lazy": false, "error": {"code": "busy", "message": "in use"}},
                {"target": "/data", "lazy": true, "error": null, "mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"}]
  })",
                           root.path());
  CHECK(system->run(scripted_command({"a"}))->err == "first");
  CHECK(system->run(scripted_command({"a"}))->out == "later");
  CHECK(system->run(scripted_command({"a"}))->ok());
  CHECK_FALSE(system->run(scripted_command({"a", "b"})));
  CHECK(system->run(scripted_command({"none"})).error().message == "no `none`");
  CHECK(system->run(scripted_command({"exportfs", "-ra"})));
  CHECK(root.read("var/lib/nfs/etab") == "table");

  CHECK(system->mounts()->at("/data") == nullptr);
  CHECK(system->mount({"s:/d", "/data", "nfs", "", 1s}));
  CHECK(system->mounts()->at("/data")->source == "s:/d");
  CHECK(system->mount({"s:/e", "/elsewhere", "nfs", "", 1s}).error().code == ErrorCode::timeout);
  CHECK(system->unmount({"/data", false, false, {}, {}, {}}).error().code == ErrorCode::busy);
  CHECK(system->unmount({"/data", false, true, {}, {}, {}}));
  CHECK(system->mounts()->at("/data") == nullptr);
}

TEST_CASE("who, when, and what answers") {
  const auto system = play(R"({
    "identity": {"hostname": "gpu7", "uid": 1000, "addresses": ["10.0.0.7"], "systemd": true},
    "now": "2026-03-04T05:06:07Z",
    "users": [{"name": "alice", "uid": 1001}, {"name": "bob", "uid": 1002, "gid": 100, "groups": [100, 7], "home": "/h/bob"}],
    "nfs": {"srv": {"v4": true, "stages": [{"stage": "resolve", "outcome": "ok"}]}}
  })");
  const Identity identity = system->identity();
  CHECK(identity.hostname == "gpu7");
  CHECK(identity.home == "/home/user");
  CHECK(identity.systemd);
  CHECK(identity.addresses == std::vector<std::string>{"10.0.0.7"});
  CHECK(std::chrono::system_clock::to_time_t(system->now()) == 1772600767);
  CHECK(system->user("alice").value() == User{"alice", 1001, 1001, {1001}, "/home/alice"});
  CHECK(system->user("bob").value() == User{"bob", 1002, 100, {100, 7}, "/h/bob"});
  CHECK(system->user("alicia").error().hint.find("alice") != std::string::npos);
  CHECK(system->probe_nfs({"srv", {}, 1s, true}).v4);
  CHECK(system->probe_nfs({"srv", {}, 1s, true}).host == "srv");
}

TEST_CASE("entries come from the script, with where they lie") {
  const auto system = play(R"({
    "mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /share rw - nfs4 s:/d rw\n",
    "entries": {"/share/env": {"kind": "directory", "names": ["bin", "lib"], "uid": 5, "mode": "2775",
                               "space": {"latency_us": 7, "size_bytes": 9}},
                "/share/l": {"kind": "symlink", "link_target": "env"},
                "/share/f": {"kind": "file", "content": "0123456789"},
                "/share/stale": {"kind": "unknown", "error_number": 116},
                "/share/dead": {"hung": true}}})");
  const auto entries =
      system->entries({{{"/share/env"}, {"/share/l", true, true, 0, true}, {"/share/f", false, false, 4}},
                       1s,
                       User{"alice", 1, 1, {}, ""}});
  CHECK(entries[0].mode == 02775);
  CHECK(entries[0].names.empty());
  CHECK_FALSE(entries[0].space);
  CHECK(entries[0].shared);
  CHECK(entries[0].mount == "/share");
  CHECK(entries[0].ancestor == "/share/env");
  CHECK(entries[1].kind == EntryKind::directory);
  CHECK(entries[1].path == "/share/l");
  CHECK(entries[1].resolved == "/share/env");
  CHECK(entries[1].names == std::vector<std::string>{"bin", "lib"});
  CHECK(entries[1].space->size_bytes == 9);
  CHECK(entries[2].content == "0123");
  CHECK(entries[2].size == 10);
  CHECK(system->entry({"/share/stale"}).error_number == ESTALE);
  CHECK_FALSE(system->entry({"/share/stale"}).hung());
  CHECK(system->entry({"/share/dead"}).hung());
  CHECK(system->entry({"/share/dead/below"}).hung());
  CHECK_FALSE(system->entry({"/share/deadline"}).hung());
  CHECK(system->asked().front() == "/share/env as alice");
}

TEST_CASE("a mount that is answered is in the table, and an unmount takes it out again") {
  const auto system = play(R"({"mount": [{"target": "/data"}], "unmount": [{}]})");
  CHECK(system->mount({"s:/d", "/data", "nfs", "vers=4.2", 1s}));
  CHECK(system->mounts()->at("/data")->fs_type == "nfs4");
  CHECK(system->mount({"s:/e", "/data", "nfs", "vers=3", 1s}));
  CHECK(system->mounts()->at("/data")->source == "s:/e");
  CHECK(system->mounts()->at("/data")->fs_type == "nfs");
  CHECK(system->unmount({"/data", false, false, {}, {}, {}}));
  CHECK(system->mounts()->owner_of("/data/x")->source == "s:/d");
  CHECK_FALSE(system->mount({"s:/f", "/other", "nfs", "", 1s}));
}

TEST_CASE("what is easier said in C++") {
  ScriptedSystem system;
  system.machine.users = {{"alice", 1001, 1001, {}, "/home/alice"}};
  system.machine.on_run = [](const Command& command) -> Result<Completed> {
    return Completed{static_cast<int>(command.argv.size()), false, "", "", 0ms};
  };
  system.machine.on_entry = [](const EntryQuery& query, const std::optional<User>& as) -> std::optional<Entry> {
    if (query.path != "/closed" || !as)
      return std::nullopt;
    Entry entry;
    entry.error_number = EACCES;
    return entry;
  };
  CHECK(system.run(scripted_command({"a", "b"}))->exit_code == 2);
  CHECK(system.entries({{{"/closed"}}, 1s, *system.user("alice")})[0].error_number == EACCES);
  CHECK(system.entry({"/closed"}).error_number == ENOSYS);
}
