#include "sys/find_processes.hpp"

#include "support/catch.hpp"
#include "support/scripted_system.hpp"

#include <cerrno>

using namespace sharefs;
using namespace sharefs::sys;

namespace {

void add(test::ScriptedSystem& system, const std::string& path, EntryKind kind, const std::string& text) {
  auto& entry = system.machine.entries[path];
  entry.kind = kind;
  (kind == EntryKind::symlink ? entry.link_target : entry.content) = text;
}

void add_process(test::ScriptedSystem& system, int pid, const std::string& comm, const std::string& space) {
  const auto directory = "/proc/" + std::to_string(pid);
  system.machine.entries["/proc"].kind = EntryKind::directory;
  system.machine.entries["/proc"].names.push_back(std::to_string(pid));
  add(system, directory + "/comm", EntryKind::file, comm + "\n");
  add(system, directory + "/ns/net", EntryKind::symlink, "net:" + space);
  add(system, directory + "/ns/mnt", EntryKind::symlink, "mnt:[1]");
}

} // namespace

TEST_CASE("processes are found by name, in our namespace only") {
  test::ScriptedSystem system;
  add_process(system, 1, "systemd", "[1]");
  add_process(system, 44, "rpc.gssd", "[1]");
  add_process(system, 45, "tlshd", "[2]"); // a container's
  for (const auto* name : {"self", "1x", "-3", "bus"})
    system.machine.entries["/proc"].names.emplace_back(name);
  add(system, "/proc/self/ns/net", EntryKind::symlink, "net:[1]");
  add(system, "/proc/self/ns/mnt", EntryKind::symlink, "mnt:[1]");
  using Found = std::vector<FoundProcess>;
  CHECK(process_ids(system, std::chrono::seconds(1)) == std::vector<int>{1, 44, 45});
  CHECK(find_processes(system, {"rpc.gssd", "tlshd"}, Namespace::network) == Found{{44, "rpc.gssd"}});
  CHECK(find_processes(system, {"rpc.gssd", "tlshd"}, Namespace::mount) == Found{{44, "rpc.gssd"}, {45, "tlshd"}});
  // Gone or not ours to see: its name, or its namespace, cannot be read.
  system.machine.entries["/proc/44/ns/net"] = {};
  CHECK(find_processes(system, {"rpc.gssd"}, Namespace::network).empty());
  for (const auto& path : system.asked())
    CHECK(path.find("cmdline") == std::string::npos);
}

TEST_CASE("entries of processes, with the links of their open files") {
  test::ScriptedSystem system;
  for (const std::string pid : {"1", "44"}) {
    add(system, "/proc/" + pid + "/exe", EntryKind::symlink, "/bin/" + pid);
    auto& list = system.machine.entries["/proc/" + pid + "/fd"];
    list.kind = EntryKind::directory;
    list.names = pid == "1" ? std::vector<std::string>{"0", "7"} : std::vector<std::string>{"3"};
    for (const auto& name : list.names)
      add(system, "/proc/" + pid + "/fd/" + name, EntryKind::symlink, "/file" + name + " of " + pid);
  }
  system.machine.entries["/proc/44"].uid = 1000;
  const auto found = read_processes(system, {1, 2, 44}, {{.path = "exe"}, {.path = "fd", .list = true}, {.path = ""}});
  REQUIRE(found.size() == 3);
  CHECK((found[0].pid == 1 && found[1].pid == 2 && found[2].pid == 44));
  CHECK(found[0].entries[0].link_target == "/bin/1");
  REQUIRE(found[0].descriptors.size() == 2);
  CHECK(found[0].descriptors[1].path == "/proc/1/fd/7");
  CHECK(found[0].descriptors[1].link_target == "/file7 of 1");
  CHECK((found[1].entries.size() == 3 && found[1].descriptors.empty())); // it has ended
  REQUIRE(found[2].descriptors.size() == 1);
  CHECK(found[2].descriptors[0].link_target == "/file3 of 44");
  CHECK((found[2].entries[2].path == "/proc/44" && found[2].entries[2].uid == 1000));
  CHECK(read_processes(system, {}, {{.path = "exe"}}).empty());
}

TEST_CASE("without /proc no process is found") {
  test::ScriptedSystem system;
  CHECK(find_processes(system, {"init"}, Namespace::mount).empty());
}
