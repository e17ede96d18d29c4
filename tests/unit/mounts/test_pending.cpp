#include "mounts/pending.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

#include <unistd.h>

using namespace sharefs;
using namespace sharefs::mounts;
using namespace std::string_literals;

TEST_CASE("the command line of mount.nfs") {
  using Words = std::vector<std::string>;
  const auto read = [](const Words& words) {
    const auto command = read_mount_command(words);
    return command ? Words{command->source, command->target, command->options, command->type} : Words{};
  };
  CHECK(read({"/sbin/mount.nfs", "storage1:/mnt/share", "/data/share/", "-v", "-o", "rw,bg", ""}) ==
        Words{"storage1:/mnt/share", "/data/share/", "rw,bg", "nfs"});
  CHECK(read({}).empty());
  CHECK(read({""}).empty());
  CHECK(read({"/sbin/mount.nfs", "-V", ""}).empty());
  CHECK(read({"mount", "-o"}).empty());
  CHECK(read({"mount", "--types=nfs4", "-obg", "a:/b", "/c", ">/dev/null"}) == Words{"a:/b", "/c", "bg", "nfs4"});
}

namespace {

void add_process(test::ScriptedSystem& system, int pid, const std::string& comm, const std::string& command_line,
                 const std::string& space = "mnt:[1]") {
  const auto directory = "/proc/" + std::to_string(pid);
  system.machine.entries["/proc"].names.push_back(std::to_string(pid));
  test::add_file(system, directory + "/comm", comm + "\n");
  test::add_file(system, directory + "/cmdline", command_line);
  test::add_link(system, directory + "/ns/mnt", space);
}

} // namespace

TEST_CASE("pending mounts are found, and cmdline of others is never read") {
  test::ScriptedSystem system;
  test::add_directory(system, "/proc");
  test::add_link(system, "/proc/self/ns/mnt", "mnt:[1]");
  add_process(system, 10, "bash", "bash\0"s);
  add_process(system, 20, "mount.nfs", "/sbin/mount.nfs\0s:/a\0/a\0-o\0rw,bg\0"s);
  add_process(system, 30, "mount.nfs4", "/sbin/mount.nfs4\0s:/b\0/b\0"s, "mnt:[2]"); // a container's
  add_process(system, 40, "mount.nfs", "");                                          // cannot be read
  add_process(system, 50, "mount.nfs", "/sbin/mount.nfs\0s:/c\0/c\0"s);
  test::add_file(system, "/proc/uptime", "1042.50 7000.00\n");
  test::add_file(system, "/proc/20/stat",
                 "20 (mount.nfs) S 1 20 20 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 " +
                     std::to_string(1000 * ::sysconf(_SC_CLK_TCK)) + " 0 0\n");
  for (const auto* path : {"/proc/50/cmdline", "/proc/10/cmdline"})
    system.machine.entries[path] = test::answered(ETIMEDOUT);
  const auto found = find_pending(system, std::chrono::seconds(1));
  REQUIRE(found.size() == 1);
  CHECK(found[0] == PendingMount{20, "s:/a", "/a", "rw,bg", std::chrono::seconds(42)});
}

TEST_CASE("without /proc nothing is pending") {
  test::ScriptedSystem system;
  system.machine.entries["/proc"] = test::answered(ETIMEDOUT);
  CHECK(find_pending(system, std::chrono::seconds(1)).empty());
}
