// remove(): each directory is emptied by one thread, and is removed after its last subdirectory.
#include "base/path.hpp"
#include "base/try.hpp"
#include "sys/fs/files.hpp"
#include "tree/tree_walk.hpp"

#include <cerrno>

namespace sharefs::tree {

namespace {

class Remover {
 public:
  Remover(const Options& options, const sys::ProgressCounters& counters, const std::string& path)
      : m_job(options, counters), m_path(path),
        m_walk(m_job, path,
               {.entry = [this](const auto& directory, const auto& entry) { unlink(directory, entry.name); },
                .left = [this](const Node& directory) { remove(directory); },
                .failed = [this](int error, const Node& directory) { return remove_replaced(error, directory); },
                .open = [](const Node& parent, const std::string& name) { return open(parent, name); }}) {}

  Result<void> run(sys::Fd tree) {
    struct stat status{};
    if (::geteuid() != 0 && ::fstat(tree.get(), &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU)
      ::fchmod(tree.get(), S_IRWXU);
    return m_walk.run(std::move(tree));
  }

 private:
  /// Ends the work, because a name that cannot be removed keeps all directories above it. Returns false.
  bool stop(int error, const std::string& relative) {
    m_stopped = true;
    m_job.stop(error_in_tree(error, join_path(m_path, relative)));
    return false;
  }

  void unlink(const std::shared_ptr<Node>& directory, const std::string& name) {
    if (::unlinkat(directory->fd.get(), name.c_str(), 0) == 0)
      m_job.counters.add(k_files);
    else if (errno == EISDIR) // somebody has replaced it by a directory
      m_walk.add_directory(directory, name);
    else if (errno != ENOENT)
      stop(errno, directory->below(name));
  }

  /// Opens a directory, and gives the owner all rights on it if they are missing. If that fails, the following calls in
  /// it fail, too, and are reported.
  static sys::Fd open(const Node& parent, const std::string& name) {
    auto fd = open_below(parent.fd.get(), name.c_str());
    struct stat status{};
    const bool closed = fd ? ::fstat(fd.get(), &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU : errno == EACCES;
    if (closed && ::geteuid() != 0 && ::fchmodat(parent.fd.get(), name.c_str(), S_IRWXU, AT_SYMLINK_NOFOLLOW) == 0 &&
        !fd)
      fd = open_below(parent.fd.get(), name.c_str());
    return fd;
  }

  /// Called for a directory that could not be opened. Removes it if somebody has replaced it by another kind of entry.
  /// True if the work continues.
  bool remove_replaced(int error, const Node& directory) {
    const bool by_another_kind = error == ELOOP || error == ENOTDIR;
    if (by_another_kind && ::unlinkat(directory.parent->fd.get(), directory.name.c_str(), 0) == 0) {
      m_job.counters.add(k_files);
      return true;
    }
    return error == ENOENT || stop(error, directory.path);
  }

  void remove(const Node& directory) {
    if (!directory.parent || m_stopped)
      return;
    if (::unlinkat(directory.parent->fd.get(), directory.name.c_str(), AT_REMOVEDIR) == 0)
      m_job.counters.add(k_files);
    else if (errno != ENOENT)
      stop(errno, directory.path);
  }

  Job m_job;
  const std::string& m_path;
  std::atomic<bool> m_stopped{false};
  TreeWalk m_walk;
};

/// Gives the directory that was found another name beside its own.
Result<void> rename_to(const std::string& aside, Found& found, const std::string& path) {
  const int parent = found.walked.directory.get();
  auto& name = found.walked.name;
  struct stat status{};
  if (name == aside)
    return {};
  if (::renameat(parent, name.c_str(), parent, aside.c_str()) != 0)
    return fail(errno_error(errno, path));
  if (::fstatat(parent, aside.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_ino != found.status.st_ino) {
    ::renameat(parent, aside.c_str(), parent, name.c_str());
    return fail(sys::conflict_error(path, "the directory that the plan was made for", "another one"));
  }
  name = aside;
  return sys::sync_directory(parent, path);
}

Result<std::uint64_t> remove_all(const Place& place, const Options& options, const sys::ProgressCounters& counters) {
  const auto before = counters.get(k_files);
  TRY_ASSIGN(auto found, find(place, true));
  if (!found.fd)
    return 0;
  const bool is_file = S_ISREG(found.status.st_mode);
  const auto finish = [&]() -> Result<std::uint64_t> {
    if (::unlinkat(found.walked.directory.get(), found.walked.name.c_str(), is_file ? 0 : AT_REMOVEDIR) != 0)
      return fail(errno_error(errno, place.path));
    counters.add(k_files);
    TRY(sys::sync_directory(found.walked.directory.get(), place.path));
    return counters.get(k_files) - before;
  };
  if (is_file)
    return finish();
  // A directory with a mount on it is refused before anything in it is removed.
  const auto inside = open_below(found.walked.directory.get(), found.walked.name.c_str());
  if (!inside)
    return fail(error_in_tree(errno, place.path));
  if (!options.aside.empty())
    TRY(rename_to(options.aside, found, place.path));
  TRY(Remover(options, counters, place.path).run(std::move(found.fd)));
  return finish(); // if the directory was replaced meanwhile, the other one is removed only if it is empty
}

} // namespace

Result<std::uint64_t> remove(const Place& place, const Options& options, const OnProgress& progress) {
  return watched(place.path, options, progress,
                 [&](const sys::ProgressCounters& counters) { return remove_all(place, options, counters); });
}

} // namespace sharefs::tree
