// measure(): reads the status of every entry in the tree.
#include "base/path.hpp"
#include "base/try.hpp"
#include "tree/tree_walk.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

namespace sharefs::tree {

namespace {

std::int64_t newest(const struct stat& status) {
  return std::max<std::int64_t>(status.st_mtime, status.st_atime);
}

/// True for an error of a directory that is left out: this user may not read it, it is a mount, or it was removed or
/// replaced meanwhile.
bool is_left_out(int error) {
  return error == EACCES || error == EXDEV || error == ENOENT || error == ENOTDIR;
}

} // namespace

Result<Measured> measure(const Place& place, const Options& options) {
  return watched(place.path, options, {}, [&](const sys::ProgressCounters& counters) -> Result<Measured> {
    TRY_ASSIGN(auto found, find_tree(place));
    Job job(options, counters);
    std::mutex mutex;
    std::set<std::pair<dev_t, ino_t>> counted; // files with several names
    Measured all{.used = newest(found.status)};
    const auto add = [&](const struct stat& status) {
      const std::lock_guard lock(mutex);
      if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
        all.used = std::max(all.used, newest(status));
      if (!S_ISDIR(status.st_mode))
        ++all.files;
      if (!S_ISREG(status.st_mode))
        return;
      all.bytes += static_cast<std::uint64_t>(status.st_size);
      if (status.st_nlink == 1 || counted.emplace(status.st_dev, status.st_ino).second)
        all.allocated += static_cast<std::uint64_t>(status.st_blocks) * 512U;
    };
    const auto add_directory = [&](const Node& directory) {
      if (struct stat status{}; ::fstat(directory.fd.get(), &status) == 0)
        add(status);
    };
    const auto add_entry = [&](const std::shared_ptr<Node>& directory, const Name& entry) {
      struct stat status{};
      counters.add(k_files);
      if (::fstatat(directory->fd.get(), entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
        add(status);
      else if (errno != ENOENT)
        job.failed(errno, join_path(place.path, directory->below(entry.name)));
    };
    const auto note_failure = [&](int error, const Node& directory) {
      if (!is_left_out(error))
        job.failed(error, join_path(place.path, directory.path));
      return true;
    };
    const auto open = [](const Node& parent, const std::string& name) {
      return open_without_atime(parent.fd.get(), name.c_str());
    };
    TreeWalk walk(job, place.path,
                  {.entered = add_directory, .entry = add_entry, .failed = note_failure, .open = open});
    TRY(walk.run(std::move(found.fd)));
    return all;
  });
}

} // namespace sharefs::tree
