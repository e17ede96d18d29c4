// hash(): what is in each file; compare(): two of these lists beside each other.
#include "base/path.hpp"
#include "tree/attributes.hpp"
#include "tree/content.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace sharefs::tree {

namespace {

class Hasher {
 public:
  Hasher(const Options& options, const sys::Pulse& pulse, const std::string& path)
      : m_job(options, pulse), m_path(path) {}

  Result<std::vector<HashedFile>> run(sys::Fd tree) {
    auto top = std::make_shared<Node>();
    top->fd = std::move(tree);
    const int directory = top->fd.get();
    check_acl(directory, "");
    m_job.crew.add([this, node = std::move(top)]() mutable { directory_of(node); });
    m_job.work({directory});
    if (auto result = m_job.result(); !result)
      return fail(result.error());
    std::ranges::sort(m_files, {}, &HashedFile::path);
    return std::move(m_files);
  }

 private:
  static constexpr std::size_t k_batch = 32;

  void directory_of(const std::shared_ptr<Node>& node) {
    std::vector<Name> names;
    if (const int error = read_names(node->fd.get(), names); error != 0)
      return m_job.failed(error, join_path(m_path, node->path));
    std::vector<Name> others;
    for (auto& name : names)
      if (name.type == DT_DIR)
        m_job.crew.add([this, node, name = name.name] { enter(node, name); });
      else
        others.push_back(std::move(name));
    for (std::size_t begin = 0; begin < others.size(); begin += k_batch) {
      const auto first = others.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = others.begin() + static_cast<std::ptrdiff_t>(std::min(begin + k_batch, others.size()));
      m_job.crew.add([this, node, some = std::vector<Name>(first, last)] {
        for (const auto& name : some)
          one(*node, name);
      });
    }
  }

  void enter(const std::shared_ptr<Node>& parent, const std::string& name) {
    auto node = std::make_shared<Node>();
    node->path = parent->below(name);
    node->depth = parent->depth + 1;
    node->fd = open_below(parent->fd.get(), name.c_str());
    struct stat status{};
    if (!node->fd || ::fstat(node->fd.get(), &status) != 0)
      return m_job.failed(errno, join_path(m_path, node->path));
    if (node->depth >= k_deepest)
      return m_job.failed(ENAMETOOLONG, join_path(m_path, node->path));
    check_acl(node->fd.get(), node->path);
    add(node->path, status, {});
    directory_of(node);
  }

  void one(const Node& node, const Name& name) {
    const auto path = node.below(name.name);
    struct stat status{};
    Hash hash;
    int error = 0;
    if (name.type == DT_REG && m_job.options.contents) {
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
    m_job.pulse.add(k_files);
    m_job.pulse.add(k_bytes, S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0);
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

std::string difference_of(const HashedFile& original, const HashedFile& copy) {
  if ((original.mode & S_IFMT) != (copy.mode & S_IFMT))
    return "is of another kind";
  if (original.hash != copy.hash || original.size != copy.size)
    return S_ISLNK(original.mode) ? "leads elsewhere" : "has another content";
  if (!S_ISLNK(original.mode) && original.mode != copy.mode)
    return "has another mode";
  if (original.seconds != copy.seconds || original.nanoseconds != copy.nanoseconds)
    return "has another time";
  return "";
}

} // namespace

Result<std::vector<HashedFile>> hash_here(const Place& place, const Options& options, const sys::Pulse& pulse) {
  prepare_process();
  auto found = find_tree(place);
  if (!found)
    return fail(found.error());
  return Hasher(options, pulse, place.path).run(std::move(found->fd));
}

Result<std::vector<Difference>> compare_here(const Place& original, const Place& copy, const Options& options,
                                             const sys::Pulse& pulse) {
  const auto ones = hash_here(original, options, pulse);
  if (!ones)
    return fail(ones.error());
  const auto others = hash_here(copy, options, pulse);
  if (!others)
    return fail(others.error());
  std::vector<Difference> found;
  auto one = ones->begin();
  auto other = others->begin();
  while (one != ones->end() || other != others->end()) {
    if (other == others->end() || (one != ones->end() && one->path < other->path)) {
      found.push_back({one++->path, "is missing"});
    } else if (one == ones->end() || other->path < one->path) {
      found.push_back({other++->path, "is not in the original"});
    } else if (auto what = difference_of(*one++, *other++); !what.empty()) {
      found.push_back({std::prev(one)->path, std::move(what)});
    }
  }
  return found;
}

} // namespace sharefs::tree
