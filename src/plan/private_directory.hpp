#pragma once
// The directories of the journal, of the lock and of runs on many nodes.
#include "base/result.hpp"
#include "sys/fs/files.hpp"
#include "sys/process/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::plan {

/// An open directory that nobody else can write to. What is in it is reached from this descriptor by single names, so
/// that whoever replaces a name on the way to it changes nothing of what is read or written. Errors of opening one:
/// `permission` for what somebody else has put there (a link, another owner), `failed` for a mode by which group or
/// others may write. Directories are made 0700 and files 0600: pre-images may hold what only their owner may read.
class PrivateDirectory {
 public:
  /// nullopt: there is none.
  static Result<std::optional<PrivateDirectory>> open(const sys::Files& files, const std::string& path);
  /// Made with its parents if it is missing.
  static Result<PrivateDirectory> make(const sys::Files& files, const std::string& path);
  [[nodiscard]] Result<std::optional<PrivateDirectory>> below(const std::string& name) const;
  [[nodiscard]] Result<PrivateDirectory> make_below(const std::string& name) const;

  [[nodiscard]] Result<std::vector<std::string>> names() const;
  /// A regular file of this user. `flags` as for open(2).
  [[nodiscard]] Result<sys::Fd> open_file(const std::string& name, int flags) const;
  [[nodiscard]] Result<std::string> read(const std::string& name) const;
  /// A new file with this content, fsynced.
  [[nodiscard]] Result<void> create(const std::string& name, const std::string& content) const;
  /// One line more (or several, with newlines between them), fsynced. A line that a killed process left incomplete is
  /// closed first.
  [[nodiscard]] Result<void> append(const std::string& name, const std::string& line) const;
  /// Of the files in a directory together, in bytes.
  [[nodiscard]] Result<std::uint64_t> size_of(const std::string& name) const;
  /// Never replaces: `conflict`.
  [[nodiscard]] Result<void> rename(const std::string& from, const std::string& to) const;
  /// A directory with the files in it.
  [[nodiscard]] Result<void> remove(const std::string& name) const;

 private:
  PrivateDirectory(sys::Fd fd, std::string path) : m_fd(std::move(fd)), m_path(std::move(path)) {}
  static Result<std::optional<PrivateDirectory>> checked(sys::Fd fd, const std::string& path);
  /// The directory that was opened after it was made; an error if it is gone already.
  static Result<PrivateDirectory> present(Result<std::optional<PrivateDirectory>> opened, const std::string& path);
  [[nodiscard]] Result<void> sync() const;

  sys::Fd m_fd;
  std::string m_path; ///< for messages
};

} // namespace sharefs::plan
