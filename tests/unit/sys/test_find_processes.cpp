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

TEST_CASE("without /proc no process is found") {
  test::ScriptedSystem system;
  CHECK(find_processes(system, {"init"}, Namespace::mount).empty());
}
