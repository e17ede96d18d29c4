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

class ModeSetter {
 public:
  ModeSetter(const Modes& modes, const Options& options, const sys::ProgressCounters& counters, const std::string& path)
      : m_modes(modes), m_job(options, counters), m_path(path) {}

  Result<std::uint64_t> run(sys::Fd tree) {
    TreeWalk walk(m_job, m_path,
                  {.names = [this](const auto& directory, const auto& names) { set_files(*directory, names); },
                   .left = [this](const Node& directory) { set(directory.fd.get(), m_modes.mode, directory.path); }});
    TRY(walk.run(std::move(tree)));
    return m_changed.load();
  }

 private:
  void failed(int error, const std::string& relative) { m_job.failed(error, join_path(m_path, relative)); }

  void set_files(const Node& directory, const std::vector<Name>& names) {
    for (const auto& [name, type] : names)
      if (type == DT_REG)
        set_file(directory, name);
  }

  void set_file(const Node& directory, const std::string& name) {
    struct stat status{};
    const auto fd = open_below(directory.fd.get(), name.c_str(), O_PATH);
    if (!fd || ::fstat(fd.get(), &status) != 0)
      return failed(errno, directory.below(name));
    if (!S_ISREG(status.st_mode) || (status.st_nlink > 1 && !is_last_name(status)))
      return;
    const mode_t runs = (status.st_mode & S_IXUSR) != 0 ? 0111U : 0U;
    set(fd.get(), m_modes.mode & (0666U | runs), directory.below(name));
  }

  /// True if all names of the file are in the tree, and this is the last of them.
  bool is_last_name(const struct stat& status) {
    const std::lock_guard lock(m_mutex);
    return ++m_names[{status.st_dev, status.st_ino}] == status.st_nlink;
  }

  void set(int fd, mode_t mode, const std::string& relative) {
    m_job.counters.add(k_files);
    struct stat status{};
    const auto path = sys::by_descriptor(fd); // fchmod(2) does not accept an O_PATH descriptor
    if (::fstat(fd, &status) != 0)
      return failed(errno, relative);
    if (m_job.options.admit)
      if (const auto may = m_job.options.admit(relative, status); !may)
        return m_job.failed(may.error());
    const bool gives_group = m_modes.gid != k_as_it_is && m_modes.gid != status.st_gid;
    if (!gives_group && (status.st_mode & 07777U) == mode)
      return;
    if (gives_group && ::chown(path.c_str(), k_as_it_is, m_modes.gid) != 0) {
      if (errno != EPERM || !may_keep_group(mode, relative))
        return failed(errno, relative);
      mode = mode_without_group(mode);
    }
    if (::chmod(path.c_str(), mode) != 0)
      return failed(errno, relative);
    ++m_changed;
  }

  /// True if an entry may keep its group: an owner who is not a member of the tree's group cannot give files to it.
  /// This is acceptable if all others have the same rights as the group, and for compiled Python, because Python then
  /// reads the source.
  static bool may_keep_group(mode_t mode, const std::string& relative) {
    return (mode_without_group(mode) & 0077U) == (mode & 0077U) || relative.ends_with(".pyc") ||
           relative.ends_with("__pycache__");
  }

  const Modes& m_modes;
  Job m_job;
  const std::string& m_path;
  std::atomic<std::uint64_t> m_changed{0};
  std::mutex m_mutex;
  std::map<std::pair<dev_t, ino_t>, nlink_t> m_names;
};

} // namespace

Result<std::uint64_t> set_modes(const Place& place, const Modes& modes, const Options& options,
                                const OnProgress& progress) {
  return watched(place.path, options, progress, [&](const sys::ProgressCounters& counters) -> Result<std::uint64_t> {
    TRY_ASSIGN(auto found, find_tree(place));
    return ModeSetter(modes, options, counters, place.path).run(std::move(found.fd));
  });
}

} // namespace sharefs::tree
