// set_modes(): what is in a directory comes before it, so that nobody who gets the tree is in it while it is given.
#include "base/path.hpp"
#include "tree/job.hpp"

#include <cerrno>
#include <map>

namespace sharefs::tree {

namespace {

class ModeSetter {
 public:
  ModeSetter(const Modes& modes, const Options& options, const sys::Pulse& pulse, const std::string& path)
      : m_modes(modes), m_job(options, pulse), m_path(path) {}

  Result<std::uint64_t> run(sys::Fd tree) {
    auto top = std::make_shared<Node>();
    top->fd = std::move(tree);
    const int directory = top->fd.get();
    m_job.crew.add([this, node = std::move(top)]() mutable { directory_of(std::move(node)); });
    m_job.work({directory});
    if (auto result = m_job.result(); !result)
      return fail(result.error());
    return m_changed.load();
  }

 private:
  void failed(int error, const std::string& relative) { m_job.failed(error, join_path(m_path, relative)); }

  void directory_of(std::shared_ptr<Node> node) {
    std::vector<Name> names;
    if (const int error = read_names(node->fd.get(), names); error != 0)
      failed(error, node->path);
    for (const auto& [name, type] : names) {
      if (type == DT_DIR) {
        ++node->open;
        m_job.crew.add([this, node, name = name] { enter(node, name); });
      } else if (type == DT_REG) {
        file(*node, name);
      }
    }
    leave(std::move(node));
  }

  void enter(const std::shared_ptr<Node>& parent, const std::string& name) {
    auto node = std::make_shared<Node>();
    node->parent = parent;
    node->path = parent->below(name);
    node->depth = parent->depth + 1;
    node->fd = open_below(parent->fd.get(), name.c_str());
    if (node->fd && node->depth < k_deepest)
      return directory_of(std::move(node));
    failed(node->fd ? ENAMETOOLONG : errno, node->path);
    leave(parent);
  }

  void leave(std::shared_ptr<Node> node) {
    while (node && --node->open == 0) {
      set(node->fd.get(), m_modes.mode, node->path);
      node->fd.reset();
      node = node->parent;
    }
  }

  void file(const Node& node, const std::string& name) {
    struct stat status{};
    const auto fd = open_below(node.fd.get(), name.c_str(), O_PATH);
    if (!fd || ::fstat(fd.get(), &status) != 0)
      return failed(errno, node.below(name));
    if (!S_ISREG(status.st_mode) || (status.st_nlink > 1 && !is_last_name(status)))
      return;
    const mode_t runs = (status.st_mode & S_IXUSR) != 0 ? 0111U : 0U;
    set(fd.get(), m_modes.mode & (0666U | runs), node.below(name));
  }

  /// All its names are in the tree, and this is the last of them.
  bool is_last_name(const struct stat& status) {
    const std::lock_guard lock(m_mutex);
    return ++m_names[{status.st_dev, status.st_ino}] == status.st_nlink;
  }

  void set(int fd, mode_t mode, const std::string& relative) {
    m_job.pulse.add(k_files);
    struct stat status{};
    const auto path = "/proc/self/fd/" + std::to_string(fd); // an O_PATH one takes no fchmod(2)
    const auto gives = [](std::uint32_t wanted, std::uint32_t has) { return wanted != k_as_it_is && wanted != has; };
    if (::fstat(fd, &status) != 0)
      return failed(errno, relative);
    if (m_job.options.admit)
      if (const auto may = m_job.options.admit(relative, status); !may)
        return m_job.failed(may.error());
    const bool owner = gives(m_modes.uid, status.st_uid) || gives(m_modes.gid, status.st_gid);
    if (!owner && (status.st_mode & 07777U) == mode)
      return;
    if ((owner && ::chown(path.c_str(), m_modes.uid, m_modes.gid) != 0) || ::chmod(path.c_str(), mode) != 0)
      return failed(errno, relative);
    ++m_changed;
  }

  const Modes& m_modes;
  Job m_job;
  const std::string& m_path;
  std::atomic<std::uint64_t> m_changed{0};
  std::mutex m_mutex;
  std::map<std::pair<dev_t, ino_t>, nlink_t> m_names;
};

} // namespace

Result<std::uint64_t> set_modes_here(const Place& place, const Modes& modes, const Options& options,
                                     const sys::Pulse& pulse) {
  prepare_process();
  auto found = find_tree(place);
  if (!found)
    return fail(found.error());
  return ModeSetter(modes, options, pulse, place.path).run(std::move(found->fd));
}

} // namespace sharefs::tree
