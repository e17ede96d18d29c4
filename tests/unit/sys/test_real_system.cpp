#include "sys/identity/identity.hpp"
#include "sys/real_system.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;

TEST_CASE("the machine itself") {
  RealSystem system;
  Command command;
  command.argv = {"echo", "hello"};
  CHECK(system.run(command)->out == "hello\n");
  CHECK(system.mounts()->owner_of("/") != nullptr);
  CHECK(system.entry({.path = "/", .space = true}).space);
  CHECK(system.entry({.path = "/etc/passwd", .read_bytes = 10}).content.size() == 10);
  const auto before = std::chrono::system_clock::now();
  const auto now = system.now();
  CHECK(before <= now);
  CHECK(now <= std::chrono::system_clock::now());
}

TEST_CASE("under another root nothing of the host is touched") {
  const test::TemporaryDirectory root;
  RealSystem system(root.path());
  Command command;
  command.argv = {"touch", root / "touched"};
  const auto ran = system.run(command);
  REQUIRE_FALSE(ran);
  CHECK(ran.error().code == ErrorCode::unsupported);
  CHECK(ran.error().message.find("--root " + root.path()) != std::string::npos);
  CHECK_FALSE(ran.error().hint.empty());
  CHECK(system.exec({"true"}, {}).code == ErrorCode::unsupported);
  CHECK(system.mount({"none", root.path(), "tmpfs", "", 1s}).error().code == ErrorCode::unsupported);
  CHECK(system.unmount({"/", false, true, {}, {}, {}}).error().code == ErrorCode::unsupported);
  CHECK(system.mounts().has_value());
  CHECK(system.files().root() == root.path());
}

TEST_CASE("who and where we are") {
  RealSystem system;
  const Identity identity = system.identity();
  CHECK_FALSE(identity.hostname.empty());
  CHECK(identity.boot_id.size() == 36);
  CHECK(identity.uid == ::geteuid());
  CHECK(identity.pid == ::getpid());
  CHECK_FALSE(identity.user.empty());
  for (const std::string& address : identity.addresses) {
    CHECK(address != "127.0.0.1");
    CHECK_FALSE(address.starts_with("fe80:"));
  }
  const auto self = system.user(identity.user);
  if (self) {
    CHECK(self->uid == identity.uid);
    CHECK(self->home == identity.home);
  }
}

TEST_CASE("users") {
  RealSystem system;
  const auto root = system.user("root");
  REQUIRE(root);
  CHECK(root->uid == 0);
  CHECK(root->home == "/root");
  CHECK(std::find(root->groups.begin(), root->groups.end(), gid_t(0)) != root->groups.end());
  for (const auto* number : {"4294967296", "4294967295", "99999999999999999999"}) // not root's, and nobody's
    CHECK_FALSE(system.user(number));
  const auto wrong = system.user("rooot");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ErrorCode::not_found);
  CHECK(wrong.error().message == "there is no user `rooot`");
  CHECK(wrong.error().hint.find("`root`") != std::string::npos);
}

TEST_CASE("this host by its names and addresses") {
  Identity identity;
  identity.hostname = "node1.cluster";
  identity.addresses = {"10.77.0.2", "fd00::2"};
  for (const char* own :
       {"node1", "NODE1.cluster", "localhost", "127.0.0.1", "127.1.2.3", "::1", "10.77.0.2", "fd00:0:0::2"})
    CHECK(is_this_host(identity, own));
  for (const char* other : {"", "node2", "node1.other", "node", "10.77.0.20", "fd00::3", "1270.0.0.1"})
    CHECK_FALSE(is_this_host(identity, other));
}
