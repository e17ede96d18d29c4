#pragma once
// A tree with everything that a copy has to keep.
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "tree/tree.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <optional>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sharefs::test {

inline struct stat status_of(const std::string& path) {
  struct stat status{};
  CAPTURE(path);
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

inline void set_time(const std::string& path, std::int64_t seconds, long nanoseconds) {
  const timespec times[]{{seconds, nanoseconds}, {seconds, nanoseconds}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

/// Does `work` in a child until it is killed; returns when it has been done once.
template <class Work> pid_t beside(Work work) {
  int begun[2];
  REQUIRE(::pipe(begun) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    [[maybe_unused]] const auto written = ::write(begun[1], "y", 1);
    for (;;)
      work();
  }
  char sign = 0;
  REQUIRE(::read(begun[0], &sign, 1) == 1);
  ::close(begun[0]);
  ::close(begun[1]);
  return child;
}

inline void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// How `copy` differs from `original`, in words: kind, mode, size, time and content of all that lies in them; times and
/// modes of directories count, owners do not.
inline std::vector<std::string> differences(const tree::Place& original, const tree::Place& copy) {
  std::map<std::string, std::pair<std::optional<tree::HashedFile>, std::optional<tree::HashedFile>>> all;
  const auto ones = tree::hash(original, {}), others = tree::hash(copy, {});
  CAPTURE(ones ? "" : ones.error().message, others ? "" : others.error().message);
  REQUIRE((ones && others));
  for (const auto& one : *ones)
    all[one.path].first = one;
  for (const auto& other : *others)
    all[other.path].second = other;
  std::vector<std::string> found;
  for (auto& [path, pair] : all) {
    auto& [one, other] = pair;
    if (one && other && S_ISLNK(one->mode))
      one->mode = other->mode |= 0777U;
    if (one == other)
      continue;
    found.push_back(path + (!other                     ? " is missing"
                            : !one                     ? " is not in the original"
                            : one->hash != other->hash ? " has another content"
                            : one->mode != other->mode ? " has another mode"
                                                       : " has another time"));
  }
  return found;
}

/// In memory, where a thousand fsyncs take no time; for what not every tmpfs has (xattrs) on the disk.
struct GivenTree {
  TemporaryDirectory directory;
  std::string from = directory / "from", to = directory / "to";

  explicit GivenTree(const std::string& above = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp")
      : directory(above) {
    std::filesystem::create_directory(from);
  }
  void write(const std::string& name, const std::string& content) const { directory.write("from/" + name, content); }
  [[nodiscard]] std::string copied(const std::string& name) const { return directory.read("to/" + name); }

  /// `count` files in directories of ten.
  void many(int count) const {
    for (int i = 0; i < count; ++i)
      write(std::to_string(i / 10) + "/" + std::to_string(i), "content " + std::to_string(i));
  }
  [[nodiscard]] tree::CopyReport copy(const tree::Options& options = {}) const {
    const auto report = tree::copy({from}, {to}, options);
    CAPTURE(report ? "" : report.error().message);
    REQUIRE(report);
    return *report;
  }
  [[nodiscard]] Error error(const tree::Options& options = {}) const {
    const auto report = tree::copy({from}, {to}, options);
    REQUIRE_FALSE(report);
    return report.error();
  }
  [[nodiscard]] std::vector<std::string> differences() const { return test::differences({from}, {to}); }
  [[nodiscard]] std::size_t names(const std::string& below) const {
    return static_cast<std::size_t>(std::distance(std::filesystem::recursive_directory_iterator(directory / below),
                                                  std::filesystem::recursive_directory_iterator()));
  }
};

} // namespace sharefs::test
