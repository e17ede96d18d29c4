#pragma once
// Private directories: for the journal, the lock and the runs on many nodes.
#include "base/result.hpp"
#include "sys/fs/files.hpp"
#include "sys/process/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::plan {

/// An open directory that nobody else can write to. Its files are opened from this descriptor by single names, so that
/// somebody who replaces a directory of the path cannot change what is read or written. Errors of opening one:
/// `permission` for a link or another owner, `failed` for a mode by which group or others may write. Directories are
/// made with mode 0700 and files with 0600, because pre-images may hold content that only the owner may read.
class PrivateDirectory {
 public:
  /// Opens a directory; nullopt if there is none.
  static Result<std::optional<PrivateDirectory>> open(const sys::Files& files, const std::string& path);
  /// Opens a directory; makes it, with its parents, if it is missing.
  static Result<PrivateDirectory> make(const sys::Files& files, const std::string& path);
  [[nodiscard]] Result<std::optional<PrivateDirectory>> open_below(const std::string& name) const;
  [[nodiscard]] Result<PrivateDirectory> make_below(const std::string& name) const;

  [[nodiscard]] Result<std::vector<std::string>> names() const;
  /// Opens a regular file of this user. `flags` as for open(2).
  [[nodiscard]] Result<sys::Fd> open_file(const std::string& name, int flags) const;
  [[nodiscard]] Result<std::string> read(const std::string& name) const;
  /// Makes a new file with this content, and fsyncs it.
  [[nodiscard]] Result<void> create(const std::string& name, const std::string& content) const;
  /// Appends a line (or several, with newlines between them), and fsyncs the file. If a killed process has left an
  /// incomplete line, that line is ended first.
  [[nodiscard]] Result<void> append(const std::string& name, const std::string& line) const;
  /// Returns the size of all files in a directory, in bytes.
  [[nodiscard]] Result<std::uint64_t> total_size(const std::string& name) const;
  /// Renames; error `conflict` if `to` exists.
  [[nodiscard]] Result<void> rename(const std::string& from, const std::string& to) const;
  /// Removes a directory with the files in it.
  [[nodiscard]] Result<void> remove(const std::string& name) const;

 private:
  PrivateDirectory(sys::Fd fd, std::string path) : m_fd(std::move(fd)), m_path(std::move(path)) {}
  static Result<std::optional<PrivateDirectory>> check_opened(sys::Fd fd, const std::string& path);
  /// Returns the directory that was just made and opened; an error if it is gone already.
  static Result<PrivateDirectory> require_opened(Result<std::optional<PrivateDirectory>> opened,
                                                 const std::string& path);
  [[nodiscard]] Result<void> sync() const;

  sys::Fd m_fd;
  std::string m_path; ///< for messages
};

} // namespace sharefs::plan
