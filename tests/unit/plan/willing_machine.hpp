#pragma once
// Real files in a temporary root, and a machine on which every tool, mount and unmount succeeds.
#include "support/scripted_system.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace sharefs::test {

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

inline sys::Completed exited(int code, const std::string& err = {}, const std::string& out = {}) {
  sys::Completed completed;
  completed.exit_code = code;
  completed.err = err;
  completed.out = out;
  return completed;
}

inline Machine willing_machine() {
  Machine machine;
  machine.identity.hostname = "node1";
  machine.identity.boot_id = "fake-boot";
  machine.identity.user = "root";
  machine.identity.pid = 4711;
  machine.now = std::chrono::system_clock::time_point(std::chrono::seconds(1769860800)); // 2026-01-31 12:00:00 UTC
  machine.on_run = [](const sys::Command&) { return exited(0); };
  machine.mount = machine.unmount = {Answer{}};
  return machine;
}

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

} // namespace sharefs::test
