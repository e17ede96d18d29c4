#include "fake_system.hpp"
#include "mounts/pending.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using namespace std::string_literals;

TEST_CASE("the command line of mount.nfs") {
  const auto pending = parse_mount_command(7, "/sbin/mount.nfs\0storage1:/mnt/share\0/data/share/\0-v\0-o\0rw,bg\0"s);
  REQUIRE(pending.has_value());
  CHECK(*pending == PendingMount{7, "storage1:/mnt/share", "/data/share", "rw,bg"});
  CHECK_FALSE(parse_mount_command(7, "").has_value());
  CHECK_FALSE(parse_mount_command(7, "/sbin/mount.nfs\0-V\0"s).has_value());
  CHECK(parse_mount_command(7, "mount.nfs\0-o\0bg\0a:/b\0/c\0"s)->options == "bg");
}

TEST_CASE("only numbers are processes") {
  CHECK(process_ids({"1", "42", "self", "1x", "", "-3", "bus"}) == std::vector<int>{1, 42});
}

namespace {

void add_process(test::FakeSystem& system, int pid, const std::string& comm, const std::string& command_line,
                 const std::string& space = "mnt:[1]") {
  const auto directory = "/proc/" + std::to_string(pid);
  system.facts["/proc"].entries.push_back(std::to_string(pid));
  system.add_file(directory + "/comm", comm + "\n");
  system.add_file(directory + "/cmdline", command_line);
  system.add_link(directory + "/ns/mnt", space);
}

} // namespace

TEST_CASE("pending mounts are found, and cmdline of others is never read") {
  test::FakeSystem system;
  system.add_directory("/proc");
  system.add_link("/proc/self/ns/mnt", "mnt:[1]");
  add_process(system, 10, "bash", "bash\0"s);
  add_process(system, 20, "mount.nfs", "/sbin/mount.nfs\0s:/a\0/a\0-o\0rw,bg\0"s);
  add_process(system, 30, "mount.nfs4", "/sbin/mount.nfs4\0s:/b\0/b\0"s, "mnt:[2]"); // a container's
  add_process(system, 40, "mount.nfs", "");                                          // cannot be read
  add_process(system, 50, "mount.nfs", "/sbin/mount.nfs\0s:/c\0/c\0"s);
  system.hanging = {"/proc/50/cmdline", "/proc/10/cmdline"};
  const auto found = find_pending(system, std::chrono::seconds(1));
  REQUIRE(found.size() == 1);
  CHECK(found[0] == PendingMount{20, "s:/a", "/a", "rw,bg"});
}

TEST_CASE("without /proc nothing is pending") {
  test::FakeSystem system;
  system.hanging = {"/proc"};
  CHECK(find_pending(system, std::chrono::seconds(1)).empty());
}
