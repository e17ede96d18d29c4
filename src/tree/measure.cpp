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

class Measurer {
 public:
  Measurer(const Options& options, const sys::ProgressCounters& counters, const std::string& path)
      : m_job(options, counters), m_path(path) {}

  Result<Measured> run(Found found) {
    add({.used = newest(found.status)});
    TreeWalk walk(m_job, m_path,
                  {.entered = [this](Node& directory) { add_directory(directory); },
                   .names = [this](const auto& directory, const auto& names) { add_files(*directory, names); },
                   .failed = [this](int error, Node& directory) { return note_failure(error, directory); },
                   .open = [](const Node& parent,
                              const std::string& name) { return open_without_atime(parent.fd.get(), name.c_str()); }});
    TRY(walk.run(std::move(found.fd)));
    return m_measured;
  }

 private:
  bool note_failure(int error, const Node& directory) {
    // EXDEV: a mount, which is not measured; ENOENT, ENOTDIR: it was removed or replaced
    if (error != EACCES && error != EXDEV && error != ENOENT && error != ENOTDIR)
      m_job.failed(error, join_path(m_path, directory.path));
    return true;
  }

  void add_directory(const Node& directory) {
    struct stat status{};
    if (::fstat(directory.fd.get(), &status) == 0)
      add({.used = newest(status)});
  }

  void add_files(const Node& directory, const std::vector<Name>& names) {
    Measured here;
    for (const auto& [name, type] : names) {
      struct stat status{};
      if (::fstatat(directory.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT)
          m_job.failed(errno, join_path(m_path, directory.below(name)));
        continue;
      }
      ++here.files;
      m_job.counters.add(k_files);
      if (!S_ISREG(status.st_mode))
        continue;
      here.used = std::max(here.used, newest(status));
      here.bytes += static_cast<std::uint64_t>(status.st_size);
      m_job.counters.add(k_bytes, static_cast<std::uint64_t>(status.st_size));
      if (status.st_nlink == 1 || is_first_name(status))
        here.allocated += static_cast<std::uint64_t>(status.st_blocks) * 512U;
    }
    add(here);
  }

  bool is_first_name(const struct stat& status) {
    const std::lock_guard lock(m_mutex);
    return m_several_names.emplace(status.st_dev, status.st_ino).second;
  }

  void add(const Measured& here) {
    const std::lock_guard lock(m_mutex);
    m_measured.files += here.files;
    m_measured.bytes += here.bytes;
    m_measured.allocated += here.allocated;
    m_measured.used = std::max(m_measured.used, here.used);
  }

  Job m_job;
  const std::string& m_path;
  std::mutex m_mutex;
  Measured m_measured;
  std::set<std::pair<dev_t, ino_t>> m_several_names;
};

} // namespace

Result<Measured> measure(const Place& place, const Options& options, const OnProgress& progress) {
  return watched(place.path, options, progress, [&](const sys::ProgressCounters& counters) -> Result<Measured> {
    TRY_ASSIGN(auto found, find_tree(place));
    return Measurer(options, counters, place.path).run(std::move(found));
  });
}

} // namespace sharefs::tree
