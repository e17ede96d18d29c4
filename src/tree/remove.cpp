// remove(): each directory is emptied by one thread, and goes when the last one below it has gone.
#include "base/path.hpp"
#include "sys/fs/files.hpp"
#include "tree/job.hpp"

#include <cerrno>

namespace sharefs::tree {

namespace {

class Remover {
 public:
  Remover(const Options& options, const sys::Pulse& pulse, const std::string& path)
      : m_job(options, pulse), m_path(path) {}

  Result<void> run(sys::Fd tree) {
    auto top = std::make_shared<Node>();
    top->fd = std::move(tree);
    const int directory = top->fd.get();
    struct stat status{};
    if (::geteuid() != 0 && ::fstat(directory, &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU)
      ::fchmod(directory, S_IRWXU);
    m_job.crew.add([this, node = std::move(top)]() mutable { empty(std::move(node)); });
    m_job.work({directory});
    return m_job.result();
  }

 private:
  [[nodiscard]] std::string whole(const std::string& relative) const { return join_path(m_path, relative); }
  /// What cannot be removed keeps all above it: no more is done.
  void stop(int error, const std::string& relative) {
    if (error == EXDEV)
      m_job.stop(
          {ErrorCode::busy, whole(relative) + ": something is mounted there, and it is left", "unmount it first", ""});
    else
      m_job.stop(errno_error(error, whole(relative)));
  }

  void empty(std::shared_ptr<Node> node) {
    std::vector<Name> names;
    if (const int error = read_names(node->fd.get(), names); error != 0)
      return stop(error, node->path);
    for (const auto& [name, type] : names) {
      if (type != DT_DIR && ::unlinkat(node->fd.get(), name.c_str(), 0) == 0)
        m_job.pulse.add(k_files);
      else if (type == DT_DIR || errno == EISDIR) { // exchanged meanwhile
        ++node->open;
        m_job.crew.add([this, node, name = name] { enter(node, name); });
      } else if (errno != ENOENT) {
        return stop(errno, node->below(name));
      }
    }
    leave(std::move(node));
  }

  void enter(const std::shared_ptr<Node>& parent, const std::string& name) {
    auto node = std::make_shared<Node>();
    node->parent = parent;
    node->path = parent->below(name);
    node->name = name;
    node->depth = parent->depth + 1;
    node->fd = open_below(parent->fd.get(), name.c_str());
    struct stat status{};
    // What its owner has protected from himself. If this fails, so does what follows.
    const bool closed =
        node->fd ? ::fstat(node->fd.get(), &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU : errno == EACCES;
    if (closed && ::geteuid() != 0 && ::fchmodat(parent->fd.get(), name.c_str(), S_IRWXU, AT_SYMLINK_NOFOLLOW) == 0 &&
        !node->fd)
      node->fd = open_below(parent->fd.get(), name.c_str());
    if (node->fd && node->depth < k_deepest)
      return empty(std::move(node));
    if (node->fd)
      return stop(ENAMETOOLONG, node->path);
    // A link or a file has taken the place of the directory.
    if ((errno == ELOOP || errno == ENOTDIR) && ::unlinkat(parent->fd.get(), name.c_str(), 0) == 0)
      m_job.pulse.add(k_files);
    else if (errno != ENOENT)
      return stop(errno, node->path);
    leave(parent);
  }

  /// A part of `node` is done; with the last one it goes itself, and is a part of what is above it.
  void leave(std::shared_ptr<Node> node) {
    while (node->parent && --node->open == 0) {
      node->fd.reset();
      if (::unlinkat(node->parent->fd.get(), node->name.c_str(), AT_REMOVEDIR) == 0)
        m_job.pulse.add(k_files);
      else if (errno != ENOENT)
        return stop(errno, node->path);
      node = node->parent;
    }
  }

  Job m_job;
  const std::string& m_path;
};

} // namespace

Result<RemoveReport> remove_here(const Place& place, const Options& options, const sys::Pulse& pulse) {
  prepare_process();
  const auto before = pulse.get(k_files);
  auto found = find(place);
  if (!found)
    return fail(found.error());
  if (!found->fd)
    return RemoveReport{};
  // Of what is mounted here only the content could go.
  const auto inside = open_below(found->walked.directory.get(), found->walked.name.c_str());
  if (!inside)
    return errno == EXDEV
               ? Result<RemoveReport>(fail(ErrorCode::busy, place.path + ": something is mounted there, and it is left",
                                           "unmount it first"))
               : fail(errno_error(errno, place.path));
  if (auto emptied = Remover(options, pulse, place.path).run(std::move(found->fd)); !emptied)
    return fail(emptied.error());
  // A directory that was exchanged meanwhile is not empty, or nothing is lost with it.
  if (::unlinkat(found->walked.directory.get(), found->walked.name.c_str(), AT_REMOVEDIR) != 0)
    return fail(errno_error(errno, place.path));
  pulse.add(k_files);
  if (auto synced = sys::sync_directory(found->walked.directory.get(), place.path); !synced)
    return fail(synced.error());
  return RemoveReport{pulse.get(k_files) - before};
}

} // namespace sharefs::tree
