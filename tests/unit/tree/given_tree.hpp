#pragma once
// A tree with everything that a copy has to keep.
#include "support/catch.hpp"
#include "support/content_of.hpp"
#include "support/temporary_directory.hpp"
#include "tree/tree.hpp"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

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

/// What lies in a directory, by its relative path: kind, mode, time, and the content of a file or the text of a link.
struct Content {
  mode_t mode = 0;
  std::int64_t seconds = 0, nanoseconds = 0;
  std::string text;
  friend bool operator==(const Content&, const Content&) = default;
};
inline std::map<std::string, Content> contents_of(const std::string& directory) {
  std::map<std::string, Content> all;
  for (const auto& one : std::filesystem::recursive_directory_iterator(directory)) {
    const auto status = status_of(one.path());
    auto& content = all[one.path().lexically_relative(directory)];
    content = {status.st_mode, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, ""};
    if (S_ISLNK(status.st_mode))
      content.text = std::filesystem::read_symlink(one.path());
    else if (S_ISREG(status.st_mode))
      content.text = content_of(one.path());
  }
  return all;
}

/// How `copy` differs from `original`, in words; owners do not count.
inline std::vector<std::string> differences(const std::string& original, const std::string& copy) {
  const auto ones = contents_of(original), others = contents_of(copy);
  std::vector<std::string> found;
  for (const auto& [path, one] : ones) {
    const auto other = others.find(path);
    if (other == others.end())
      found.push_back(path + " is missing");
    else if (one != other->second)
      found.push_back(path + (one.text != other->second.text   ? " has another content"
                              : one.mode != other->second.mode ? " has another mode"
                                                               : " has another time"));
  }
  for (const auto& [path, other] : others)
    if (!ones.contains(path))
      found.push_back(path + " is not in the original");
  return found;
}

/// For what not every tmpfs has (xattrs) it is given a directory on the disk.
struct GivenTree {
  TemporaryDirectory directory;
  std::string from = directory / "from", to = directory / "to";

  explicit GivenTree(const std::string& above = temporary_place()) : directory(above) {
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
  [[nodiscard]] std::vector<std::string> differences() const { return test::differences(from, to); }
  [[nodiscard]] std::size_t names(const std::string& below) const {
    return static_cast<std::size_t>(std::distance(std::filesystem::recursive_directory_iterator(directory / below),
                                                  std::filesystem::recursive_directory_iterator()));
  }
};

} // namespace sharefs::test
