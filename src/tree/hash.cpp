// hash(): what is in each file.
#include "base/path.hpp"
#include "tree/attributes.hpp"
#include "tree/content.hpp"
#include "tree/tree_walk.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace sharefs::tree {

namespace {

class Hasher {
 public:
  Hasher(const Options& options, const sys::ProgressCounters& counters, const std::string& path)
      : m_job(options, counters), m_path(path) {}

  Result<std::vector<HashedFile>> run(sys::Fd tree) {
    check_acl(tree.get(), "");
    TreeWalk walk(m_job, m_path,
                  {.entered = [this](const Node& directory) { add_directory(directory); },
                   .names = [this](const auto& directory, auto names) { add_files(directory, std::move(names)); }});
    if (auto result = walk.run(std::move(tree)); !result)
      return fail(result.error());
    std::ranges::sort(m_files, {}, &HashedFile::path);
    return std::move(m_files);
  }

 private:
  static constexpr std::size_t k_batch = 32;

  void add_directory(const Node& directory) {
    struct stat status{};
    if (::fstat(directory.fd.get(), &status) != 0)
      return m_job.failed(errno, join_path(m_path, directory.path));
    check_acl(directory.fd.get(), directory.path);
    add(directory.path, status, {});
  }

  void add_files(const std::shared_ptr<Node>& directory, std::vector<Name> names) {
    for (std::size_t begin = 0; begin < names.size(); begin += k_batch) {
      const auto first = names.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = names.begin() + static_cast<std::ptrdiff_t>(std::min(begin + k_batch, names.size()));
      m_job.workers.add([this, node = directory, some = std::vector<Name>(first, last)] {
        for (const auto& name : some)
          one(*node, name);
      });
    }
  }

  void one(const Node& node, const Name& name) {
    const auto path = node.below(name.name);
    struct stat status{};
    Hash hash;
    int error = 0;
    if (name.type == DT_REG) {
      const auto fd = open_below(node.fd.get(), name.name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
      if (!fd || ::fstat(fd.get(), &status) != 0)
        return m_job.failed(errno, join_path(m_path, path));
      check_acl(fd.get(), path);
      const auto hashed = S_ISREG(status.st_mode) ? hash_content(m_job, fd.get(), status, true)
                                                  : Hashed(tl::make_unexpected(ContentError{EINVAL, false}));
      hashed ? void(hash = *hashed) : void(error = hashed.error().error_number);
    } else if (::fstatat(node.fd.get(), name.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      error = errno;
    } else if (S_ISLNK(status.st_mode)) {
      std::array<char, PATH_MAX> text{};
      const ssize_t size = ::readlinkat(node.fd.get(), name.name.c_str(), text.data(), text.size());
      size < 0 ? void(error = errno) : void(hash = hash_text({text.data(), static_cast<std::size_t>(size)}));
    }
    if (error != 0)
      return m_job.failed(error, join_path(m_path, path));
    m_job.counters.add(k_files);
    m_job.counters.add(k_bytes, S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0);
    add(path, status, hash);
  }

  void check_acl(int fd, const std::string& path) {
    if (m_job.options.refuse_acls && has_acl(fd))
      m_job.failed({ErrorCode::unsupported, join_path(m_path, path) + ": has an ACL", "", ""});
  }

  void add(const std::string& path, const struct stat& status, const Hash& hash) {
    const std::lock_guard lock(m_mutex);
    m_files.push_back({path, status.st_mode, S_ISDIR(status.st_mode) ? 0 : static_cast<std::uint64_t>(status.st_size),
                       status.st_mtim.tv_sec, status.st_mtim.tv_nsec, hash});
  }

  Job m_job;
  const std::string& m_path;
  std::mutex m_mutex;
  std::vector<HashedFile> m_files;
};

} // namespace

Result<std::vector<HashedFile>> hash_here(const Place& place, const Options& options,
                                          const sys::ProgressCounters& counters) {
  prepare_process();
  auto found = find_tree(place);
  if (!found)
    return fail(found.error());
  return Hasher(options, counters, place.path).run(std::move(found->fd));
}

} // namespace sharefs::tree
