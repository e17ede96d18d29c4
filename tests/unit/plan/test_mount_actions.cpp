#include "plan/apply.hpp"
#include "support/catch.hpp"
#include "willing_machine.hpp"

using namespace sharefs;
using namespace sharefs::plan;
using test::ScriptedSystem;

namespace {

std::string apply(const Action& action, ScriptedSystem& system) {
  const auto outcome = apply_action(action, system);
  return outcome ? to_string(*outcome) : std::string(to_string(outcome.error().code)) + ": " + outcome.error().message;
}

} // namespace

TEST_CASE("Mount looks at the table before and after") {
  ScriptedSystem system("/nonexistent", test::willing_machine());
  const Mount share{"s:/x", "/data", "nfs", "hard"};
  CHECK(apply(share, system) == "done");
  CHECK(apply(share, system) == "unchanged"); // the table says nfs4
  CHECK(apply(Mount{"s:/x/", "/data/", "nfs4", "soft"}, system) == "unchanged");
  CHECK(apply(Mount{"s:/y", "/data", "nfs", ""}, system) == "conflict: /data: expected no mount, found `s:/x` (nfs4)");
  CHECK(apply(Mount{"s:/x", "/data", "cifs", ""}, system).starts_with("conflict"));
  CHECK(system.calls() == std::vector<std::string>{"mount -t nfs -o hard s:/x /data"});

  system.machine.remove_mount("/data");
  system.machine.add_mount("systemd-1", "/data", "autofs"); // an automount point waits for its mount
  CHECK(apply(share, system) == "done");
}

TEST_CASE("a mount that is not in the table afterwards is not done") {
  ScriptedSystem system("/nonexistent", test::willing_machine());
  system.machine.on_mount = [](const sys::MountCall&) { return Result<void>{}; };
  CHECK(apply(Mount{"s:/x", "/data", "nfs", "hard"}, system).starts_with("failed: /data: the mount command reported"));
  CHECK(apply(Mount{"s:/x", "/data", "nfs", "rw,bg,soft"}, system) ==
        "timeout: /data: the server does not answer, mount.nfs goes on trying in the background (bg)");
  system.machine.on_mount = [](const sys::MountCall&) {
    return fail(ErrorCode::permission, "access denied by server");
  };
  CHECK(apply(Mount{"s:/x", "/data", "nfs", "hard"}, system) == "permission: access denied by server");
}

TEST_CASE("Unmount takes away only what it was planned for") {
  ScriptedSystem system("/nonexistent", test::willing_machine());
  system.machine.add_mount("s:/x", "/data", "nfs4");
  CHECK(apply(Unmount{"/data", false, false, "s:/y", "nfs4", ""}, system) ==
        "conflict: /data: expected `s:/y`, found `s:/x` (nfs4)");
  CHECK(apply(Unmount{"/data", false, false, "s:/x/", "nfs", ""}, system) == "done");
  CHECK(apply(Unmount{"/data", false, false, "s:/x", "nfs", ""}, system) == "unchanged");
  system.machine.add_mount("s:/x", "/data", "nfs4");
  CHECK(apply(Unmount{"/data", true, false, "", "", ""}, system) == "done");
}
