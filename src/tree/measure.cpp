// measure(): one look at everything in the tree.
#include "base/path.hpp"
#include "tree/job.hpp"

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
  Measurer(const Options& options, const sys::Pulse& pulse, const std::string& path)
      : m_job(options, pulse), m_path(path) {}

  Result<Measured> run(Found found) {
    auto top = std::make_shared<Node>();
    top->fd = std::move(found.fd);
    const int directory = top->fd.get();
    m_measured.used = newest(found.status);
    m_job.crew.add([this, node = std::move(top)]() mutable { directory_of(std::move(node)); });
    m_job.work({directory});
    if (auto result = m_job.result(); !result)
      return fail(result.error());
    return m_measured;
  }

 private:
  void enter(const std::shared_ptr<Node>& parent, const std::string& name) {
    auto node = std::make_shared<Node>();
    node->path = parent->below(name);
    node->depth = parent->depth + 1;
    node->fd = open_unnoted(parent->fd.get(), name.c_str());
    if (node->fd && node->depth < k_deepest)
      return directory_of(std::move(node));
    if (!node->fd && errno == EACCES)
      return add({.directories = 1, .unread = 1});
    if (const int error = node->fd ? ENAMETOOLONG : errno; error != EXDEV && error != ENOENT && error != ENOTDIR)
      m_job.failed(error, join_path(m_path, node->path)); // not what is mounted there, or gone
  }

  void directory_of(std::shared_ptr<Node> node) {
    std::vector<Name> names;
    if (const int error = read_names(node->fd.get(), names); error != 0)
      return m_job.failed(error, join_path(m_path, node->path));
    Measured here;
    here.directories = 1;
    for (const auto& [name, type] : names) {
      struct stat status{};
      if (::fstatat(node->fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT)
          m_job.failed(errno, join_path(m_path, node->below(name)));
        continue;
      }
      if (S_ISDIR(status.st_mode)) {
        here.used = std::max(here.used, newest(status));
        m_job.crew.add([this, node, name = name] { enter(node, name); });
        continue;
      }
      ++here.files;
      m_job.pulse.add(k_files);
      if (!S_ISREG(status.st_mode))
        continue;
      here.used = std::max(here.used, newest(status));
      here.bytes += static_cast<std::uint64_t>(status.st_size);
      m_job.pulse.add(k_bytes, static_cast<std::uint64_t>(status.st_size));
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
    m_measured.directories += here.directories;
    m_measured.bytes += here.bytes;
    m_measured.allocated += here.allocated;
    m_measured.unread += here.unread;
    m_measured.used = std::max(m_measured.used, here.used);
  }

  Job m_job;
  const std::string& m_path;
  std::mutex m_mutex;
  Measured m_measured;
  std::set<std::pair<dev_t, ino_t>> m_several_names;
};

} // namespace

Result<Measured> measure_here(const Place& place, const Options& options, const sys::Pulse& pulse) {
  prepare_process();
  auto found = find_tree(place);
  if (!found)
    return fail(found.error());
  return Measurer(options, pulse, place.path).run(std::move(*found));
}

} // namespace sharefs::tree
