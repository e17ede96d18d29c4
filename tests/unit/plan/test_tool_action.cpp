#include "plan/apply.hpp"
#include "support/catch.hpp"
#include "willing_machine.hpp"

using namespace sharefs;
using namespace sharefs::plan;
using test::exited;

TEST_CASE("RunTool accepts the exit codes that it names") {
  test::ScriptedSystem system("/nonexistent", test::willing_machine());
  system.machine.on_run = [](const sys::Command&) { return exited(5); };
  CHECK(apply_action(RunTool{{"t"}, {}, false, {0, 5}}, system) == Outcome::done);
  CHECK_FALSE(apply_action(RunTool{{"t"}, {}}, system));
  CHECK_FALSE(apply_action(RunTool{}, system));
}

TEST_CASE("a failing tool speaks for itself") {
  test::ScriptedSystem system("/nonexistent", test::willing_machine());
  system.machine.on_run = [](const sys::Command&) { return exited(1, "\nexportfs: bad\n  second\n", "out\n"); };
  const auto failed = apply_action(RunTool{{"exportfs", "-r"}, {}}, system);
  REQUIRE_FALSE(failed);
  CHECK(failed.error() ==
        Error{ErrorCode::failed, "`exportfs -r` failed with exit code 1: exportfs: bad", "", "second\nout"});

  system.machine.on_run = [](const sys::Command&) {
    auto result = exited(-1);
    result.timed_out = true;
    return result;
  };
  const auto late = apply_action(RunTool{{"exportfs"}, {}, false, {-1}, std::chrono::milliseconds(1500)}, system);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::timeout);
  CHECK(late.error().message == "`exportfs` did not end within 1.5 s");
}

TEST_CASE("a tool that must be silent fails by what it says") {
  test::ScriptedSystem system("/nonexistent", test::willing_machine());
  RunTool verify{{"systemd-analyze", "verify", "x.mount"}, {}, true};
  verify.silent = true;
  system.machine.on_run = [](const sys::Command&) { return exited(0, "\n"); };
  CHECK(apply_action(verify, system) == Outcome::done);
  system.machine.on_run = [](const sys::Command&) { return exited(0, "x.mount:3: Unknown key name 'Wath'\n"); };
  const auto failed = apply_action(verify, system);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message == "`systemd-analyze verify x.mount` found a fault: x.mount:3: Unknown key name 'Wath'");
}

TEST_CASE("a missing program comes with the name of its package") {
  test::ScriptedSystem system("/nonexistent", test::willing_machine());
  system.machine.on_run = [](const sys::Command&) { return fail(ErrorCode::not_found, "`x` is not installed"); };
  const auto hint = [&system](const std::string& program) {
    return apply_action(RunTool{{program}, {}}, system).error().hint;
  };
  CHECK(hint("exportfs") == "install it: `apt install nfs-kernel-server` (Debian, Ubuntu) or `dnf install nfs-utils` "
                            "(RHEL, Fedora)");
  CHECK(hint("/usr/sbin/rpc.nfsd").starts_with("install it: `apt install nfs-kernel-server`"));
  CHECK(hint("rpc.statd").starts_with("install it: `apt install nfs-common`"));
  CHECK(hint("frobnicate") == "install it, or add its directory to PATH");
}
