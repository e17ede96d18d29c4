#pragma once
// A machine for tests of plan: real files in a temporary root, a mount table and tools that are values.
#include "sys/system.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace sharefs::plan::test {

/// Gone with the object. In memory where there is a tmpfs: hundreds of fsyncs are part of these tests.
class TemporaryRoot {
 public:
  TemporaryRoot() {
    std::string name = (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + std::string("/sharefs-unit-XXXXXX");
    m_path = ::mkdtemp(name.data());
    ::chmod(m_path.c_str(), 0755); // actors of tests are other users
  }
  TemporaryRoot(const TemporaryRoot&) = delete;
  TemporaryRoot& operator=(const TemporaryRoot&) = delete;
  ~TemporaryRoot() {
    std::error_code ignored;
    std::filesystem::remove_all(m_path, ignored);
  }
  [[nodiscard]] const std::string& path() const { return m_path; }

 private:
  std::string m_path;
};

class FakeSystem final : public sys::System {
 public:
  explicit FakeSystem(const std::string& root) : System(sys::Files(root)) {
    who.hostname = "node1";
    who.boot_id = "fake-boot";
    who.user = "root";
    who.pid = 4711;
  }

  sys::Identity who;
  std::vector<sys::MountEntry> table;
  std::function<Result<sys::Completed>(const sys::Command&)> tool; ///< empty: every tool succeeds
  std::function<Result<void>(const sys::MountCall&)> on_mount;     ///< empty: it is in the table afterwards
  std::vector<std::string> calls;
  std::chrono::system_clock::time_point time{std::chrono::seconds(1769860800)}; // 2026-01-31 12:00:00 UTC

  static sys::MountEntry entry(const std::string& source, const std::string& target, const std::string& type) {
    sys::MountEntry mount;
    mount.source = source;
    mount.target = target;
    mount.fs_type = type;
    return mount;
  }

  Result<sys::Completed> run(const sys::Command& command) override {
    note("run " + shell_join(command.argv));
    if (tool)
      return tool(command);
    sys::Completed completed;
    completed.exit_code = 0;
    return completed;
  }
  Error exec(const Argv&, const std::vector<std::string>&) override { return {}; }
  Result<sys::MountTable> mounts() override {
    const std::lock_guard lock(m_mutex);
    std::vector<sys::MountEntry> entries{entry("/dev/vda", "/", "ext4")};
    entries[0].id = 1;
    for (std::size_t i = 0; i < table.size(); ++i) {
      entries.push_back(table[i]);
      entries.back().id = static_cast<int>(i) + 2;
      entries.back().parent = sys::MountTable({entries.begin(), entries.end() - 1}).owner_of(table[i].target)->id;
    }
    return sys::MountTable(entries);
  }
  Result<void> mount(const sys::MountCall& call) override {
    note("mount " + call.source + " " + call.target);
    if (on_mount)
      return on_mount(call);
    const std::lock_guard lock(m_mutex);
    table.push_back(entry(call.source, call.target, call.fs_type == "nfs" ? "nfs4" : call.fs_type));
    return {};
  }
  Result<void> unmount(const sys::UnmountCall& call) override {
    note("unmount " + call.target);
    const std::lock_guard lock(m_mutex);
    std::erase_if(table, [&call](const sys::MountEntry& mount) { return mount.target == call.target; });
    return {};
  }
  sys::NfsProbe probe_nfs(const sys::NfsProbeRequest&) override { return {}; }
  std::vector<sys::Entry> entries(const sys::EntryRequest& request) override {
    return std::vector<sys::Entry>(request.queries.size());
  }
  std::vector<sys::PathProbe> probe_paths(const std::vector<sys::PathProbeRequest>& requests) override {
    return std::vector<sys::PathProbe>(requests.size());
  }
  Result<std::vector<sys::PathFact>> inspect(const sys::InspectRequest&) override {
    return fail(ErrorCode::unsupported, "not in this test");
  }
  sys::Identity identity() override { return who; }
  Result<sys::User> user(std::string_view) override { return fail(ErrorCode::not_found, "not in this test"); }
  std::chrono::system_clock::time_point now() override { return time; }

 private:
  void note(const std::string& call) {
    const std::lock_guard lock(m_mutex);
    calls.push_back(call);
  }
  std::mutex m_mutex;
};

inline std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline void put(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

/// Every path below `root` but the state directory, with its type, mode, owner, and content or link text.
inline std::map<std::string, std::string> snapshot(const std::string& root) {
  std::map<std::string, std::string> tree;
  for (auto entry = std::filesystem::recursive_directory_iterator(root); entry != std::filesystem::end(entry);
       ++entry) {
    const auto path = entry->path().string();
    if (path == root + "/state") {
      entry.disable_recursion_pending();
      continue;
    }
    struct stat status{};
    ::lstat(path.c_str(), &status);
    std::ostringstream text;
    text << std::oct << status.st_mode << std::dec << " " << status.st_uid << ":" << status.st_gid << " ";
    if (entry->is_symlink())
      text << "-> " << std::filesystem::read_symlink(entry->path()).string();
    else if (entry->is_regular_file())
      text << content_of(path);
    tree[path.substr(root.size())] = text.str();
  }
  return tree;
}

} // namespace sharefs::plan::test
