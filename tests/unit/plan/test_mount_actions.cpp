#include "plan/apply.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"

using namespace sharefs;
using namespace sharefs::plan;
using test::ScriptedSystem;

namespace {

std::string apply(const Action& action, ScriptedSystem& system) {
  const auto outcome = apply_action(action, system);
  return outcome ? to_string(*outcome) : std::string(to_string(outcome.error().code)) + ": " + outcome.error().message;
}

/// Mounts appear in the table as the kernel shows them, and go.
void make_live(ScriptedSystem& system) {
  system.machine.on_mount = [&system](const sys::MountCall& call) {
    system.machine.add_mount(call.source, call.target, "nfs4");
    return Result<void>();
  };
  system.machine.on_unmount = [&system](const sys::UnmountCall& call) {
    system.machine.remove_mount(call.target);
    return Result<void>();
  };
}

} // namespace

TEST_CASE("Mount reads the table before and after") {
  ScriptedSystem system;
  make_live(system);
  const Mount share{"s:/x", "/data", "nfs", "hard"};
  CHECK(apply(share, system) == "done");
  CHECK(apply(share, system) == "unchanged"); // the table says nfs4
  CHECK(apply(Mount{"S:/x/", "/data/", "nfs4", "soft"}, system) == "unchanged");
  CHECK(apply(Mount{"s:/y", "/data", "nfs", ""}, system) == "conflict: /data: expected no mount, found `s:/x` (nfs4)");
  CHECK(system.calls().size() == 1);

  ScriptedSystem automount;
  make_live(automount);
  automount.machine.add_mount("systemd-1", "/data", "autofs"); // an automount point waits for its mount
  CHECK(apply(share, automount) == "done");
}

TEST_CASE("only the table says whether something is mounted") {
  ScriptedSystem system;
  const Mount share{"s:/x", "/data", "nfs", "hard"};
  system.machine.on_mount = [](const sys::MountCall&) { return Result<void>{}; };
  CHECK(apply(share, system).starts_with("failed: the mount command reported success"));
  system.machine.on_mount = [](const sys::MountCall&) {
    return fail(ErrorCode::permission, "access denied by server");
  };
  CHECK(apply(share, system) == "permission: access denied by server");
  // its deadline passed in the moment in which it was done
  system.machine.on_mount = [&system](const sys::MountCall& call) -> Result<void> {
    system.machine.add_mount(call.source, call.target, "nfs4");
    return fail(ErrorCode::timeout, "mount.nfs gave no answer within 30 s");
  };
  CHECK(apply(share, system) == "done");
}

TEST_CASE("Unmount takes away only what it was planned for") {
  ScriptedSystem system;
  make_live(system);
  system.machine.add_mount("s:/x", "/data", "nfs4");
  CHECK(apply(Unmount{"/data", false, false, "s:/y", "nfs4", ""}, system) ==
        "conflict: /data: expected `s:/y`, found `s:/x` (nfs4)");
  CHECK(apply(Unmount{"/data", false, false, "s:/x/", "nfs", ""}, system) == "done");
  CHECK(apply(Unmount{"/data", false, false, "s:/x", "nfs", ""}, system) == "unchanged");
  system.machine.add_mount("s:/x", "/data", "nfs4");
  CHECK(apply(Unmount{"/data", true, false, "", "", ""}, system) == "done");
}

TEST_CASE("an image is known by the file behind its loop device") {
  ScriptedSystem system;
  system.machine.on_mount = [&system](const sys::MountCall& call) {
    system.machine.add_mount("/dev/loop7", call.target, "squashfs");
    return Result<void>();
  };
  system.machine.on_unmount = [&system](const sys::UnmountCall& call) {
    system.machine.remove_mount(call.target);
    return Result<void>();
  };
  std::string behind = "/stage/1.squashfs\n";
  system.machine.on_entry = [&](const sys::EntryQuery& query, const std::optional<sys::User>&) {
    sys::Entry entry;
    entry.kind = sys::EntryKind::file;
    if (query.path.ends_with("/loop/backing_file"))
      entry.content = behind;
    return std::optional(entry);
  };
  const Mount image{"/stage/1.squashfs", "/stage/1", sys::k_image, "ro"};
  CHECK(apply(image, system) == "done");
  CHECK(apply(image, system) == "unchanged");
  const auto undo = std::get<Unmount>(*invert(image));
  CHECK(apply(undo, system) == "done");
  CHECK(apply(image, system) == "done");
  behind = "/stage/2.squashfs\n";
  CHECK(apply(image, system).starts_with("conflict: /stage/1: expected no mount"));
  CHECK(apply(undo, system).starts_with("conflict: /stage/1: expected `/stage/1.squashfs`"));
}
