// set_modes(): the entries of a directory are changed before the directory itself, so that those who get access to the
// tree cannot enter it while it is being changed.
#include "base/path.hpp"
#include "base/try.hpp"
#include "sys/process/fd.hpp"
#include "tree/attributes.hpp"
#include "tree/tree_walk.hpp"

#include <cerrno>
#include <map>

namespace sharefs::tree {

namespace {

/// True if an entry may keep its group: an owner who is not a member of the tree's group cannot give files to it. This
/// is acceptable if all others have the same rights as the group, and for compiled Python, because Python then reads
/// the source.
bool may_keep_group(mode_t mode, const std::string& relative) {
  return (mode_without_group(mode) & 0077U) == (mode & 0077U) || relative.ends_with(".pyc") ||
         relative.ends_with("__pycache__");
}

} // namespace

Result<std::uint64_t> set_modes(const Place& place, const Modes& modes, const Options& options) {
  return watched(place.path, options, {}, [&](const sys::ProgressCounters& counters) -> Result<std::uint64_t> {
    TRY_ASSIGN(auto found, find_tree(place));
    Job job(options, counters);
    std::atomic<std::uint64_t> changed{0};
    std::mutex mutex;
    std::map<std::pair<dev_t, ino_t>, nlink_t> seen; // how many names of a file were seen
    const auto failed = [&](const std::string& relative) { job.failed(errno, join_path(place.path, relative)); };
    const auto set = [&](int fd, const struct stat& status, mode_t mode, const std::string& relative) {
      counters.add(k_files);
      const auto path = sys::by_descriptor(fd); // fchmod(2) does not accept an O_PATH descriptor
      if (options.admit)
        if (const auto may = options.admit(relative, status); !may)
          return job.failed(may.error());
      const bool gives_group = modes.gid != k_as_it_is && modes.gid != status.st_gid;
      if (!gives_group && (status.st_mode & 07777U) == mode)
        return;
      if (gives_group && ::chown(path.c_str(), k_as_it_is, modes.gid) != 0) {
        if (errno != EPERM || !may_keep_group(mode, relative))
          return failed(relative);
        mode = mode_without_group(mode);
      }
      if (::chmod(path.c_str(), mode) != 0)
        return failed(relative);
      ++changed;
    };
    /// True if all names of the file are in the tree, and this is the last of them.
    const auto is_last_name = [&](const struct stat& status) {
      const std::lock_guard lock(mutex);
      return ++seen[{status.st_dev, status.st_ino}] == status.st_nlink;
    };
    const auto set_file = [&](const std::shared_ptr<Node>& directory, const Name& entry) {
      const auto& [name, type] = entry;
      struct stat status{};
      const auto fd = type == DT_REG ? open_below(directory->fd.get(), name.c_str(), O_PATH) : sys::Fd();
      if (type == DT_REG && (!fd || ::fstat(fd.get(), &status) != 0))
        failed(directory->below(name));
      else if (S_ISREG(status.st_mode) && (status.st_nlink == 1 || is_last_name(status)))
        set(fd.get(), status, modes.mode & (0666U | ((status.st_mode & S_IXUSR) != 0 ? 0111U : 0U)),
            directory->below(name));
    };
    const auto set_directory = [&](const Node& directory) {
      if (struct stat status{}; ::fstat(directory.fd.get(), &status) == 0)
        set(directory.fd.get(), status, modes.mode, directory.path);
      else
        failed(directory.path);
    };
    TreeWalk walk(job, place.path, {.entry = set_file, .left = set_directory});
    TRY(walk.run(std::move(found.fd)));
    return changed.load();
  });
}

} // namespace sharefs::tree
