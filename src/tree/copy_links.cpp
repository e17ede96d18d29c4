// copy(): symbolic links, further names (hard links) of files, and names that a layer removes.
#include "tree/copier.hpp"
#include "tree/fault_injection.hpp"

#include <cerrno>

namespace sharefs::tree {

std::string Copier::link_as(const std::string& name, bool at_once,
                            const std::function<bool(const std::string& as)>& link) {
  auto made = at_once ? name : temporary_name();
  may_be_killed();
  bool done = link(made);
  if (!done && errno == EEXIST) // the owner has put something there
    done = link(made = temporary_name());
  return done ? made : "";
}

/// Removes this name from the copy, also a whole directory.
void Copier::remove_name(const Pair& pair, const std::string& name) {
  struct stat there{};
  if (::fstatat(pair.to.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT)
      m_job.failed(errno, target(pair.below(name)));
    return;
  }
  may_be_killed();
  remove_below(pair.to.get(), {name, static_cast<unsigned char>(IFTODT(there.st_mode))}, pair.below(name));
}

/// Makes the name in the copy a hard link to the original. False: the file must be copied instead.
bool Copier::link_file(const Pair& pair, const std::string& name) {
  const auto path = pair.below(name);
  struct stat status{};
  if (::fstatat(pair.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
    return false; // the copy reports the error
  if (!admits(path, status))
    return true;
  const auto copies = m_job.options.copy_instead ? m_job.options.copy_instead(path, status) : Result<bool>(false);
  if (!copies)
    m_job.failed(copies.error());
  if (!copies || *copies)
    return !copies;
  const auto fd =
      m_capabilities ? open_below(pair.fd.get(), name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY) : sys::Fd();
  const auto attributes = fd ? read_attributes(fd.get()) : tl::expected<Attributes, int>();
  if ((m_capabilities && !fd) || !attributes)
    return false;
  if (has_set_id(status) || attributes->capability) {
    refuse_rights(path);
    return true;
  }
  // Checks that nobody has replaced the file. Size and time are not compared: until the link is made another client may
  // have a write delegation, and the attributes of the server are older than that client's writes (Linux 6.14).
  const auto is_linked = [&](const std::string& as) {
    struct stat there{};
    return ::fstatat(pair.to.get(), as.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_dev == status.st_dev &&
           there.st_ino == status.st_ino && there.st_mode == status.st_mode && there.st_uid == status.st_uid &&
           there.st_gid == status.st_gid;
  };
  if ((pair.existed || pair.second_read) && is_linked(name)) {
    count(&CopyReport::kept);
    return true;
  }
  // A link is complete at once. On NFS the answer may be lost, and the repeated call returns EEXIST.
  const auto made = link_as(name, true, [&](const std::string& as) {
    return ::linkat(pair.fd.get(), name.c_str(), pair.to.get(), as.c_str(), 0) == 0 ||
           (errno == EEXIST && is_linked(as));
  });
  // EPERM: a file of another user, of which the kernel lets only its owner make further names (protected_hardlinks).
  if (made.empty() && (errno == EMLINK || errno == EPERM))
    return false;
  if (made.empty() && errno == EXDEV)
    refuse(path, "lies on another file system than its copy, of which it cannot be a further name",
           "move it out of the tree");
  else if (made.empty() && errno != ENOENT) // ENOENT: finish() notices that the directory has changed
    m_job.failed(errno, target(path));
  if (made.empty())
    return true;
  if (!is_linked(made)) {
    ::unlinkat(pair.to.get(), made.c_str(), 0);
    changed(path);
  } else {
    move_into_place(pair, made, name);
  }
  return true;
}

void Copier::copy_link(const Pair& pair, const std::string& name) {
  const auto path = pair.below(name);
  struct stat status{};
  struct stat there{};
  const auto text = sys::read_link(pair.fd.get(), name);
  if (!text || !stat_now(pair.fd.get(), name.c_str(), status) || !S_ISLNK(status.st_mode)) {
    if (errno != ENOENT)
      changed(path);
    return;
  }
  if (!admits(path, status))
    return;
  m_job.counters.add(k_files);
  if ((pair.existed || pair.second_read) && sys::read_link(pair.to.get(), name) == text &&
      ::fstatat(pair.to.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && same_time(there, status))
    return count(&CopyReport::kept);
  const auto made = link_as(name, in_place(pair, status), [&](const std::string& as) {
    return ::symlinkat(text->c_str(), pair.to.get(), as.c_str()) == 0;
  });
  if (made.empty())
    return m_job.failed(errno, target(path));
  if (!m_job.options.content_only && !m_job.options.own && (status.st_uid != m_uid || status.st_gid != m_gid)) {
    [[maybe_unused]] const int as_far_as_allowed =
        ::fchownat(pair.to.get(), made.c_str(), status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW);
  }
  if (const int error = m_job.options.content_only ? 0 : set_times(pair.to.get(), made.c_str(), status);
      error != 0 && error != EOPNOTSUPP)
    m_job.failed(error, target(path));
  may_be_killed();
  move_into_place(pair, made, name);
}

/// Adds a further name of a file that is copied under another name. False: the file must be copied.
bool Copier::add_name(const Pair& pair, const File& file) {
  std::string first;
  {
    const std::lock_guard lock(m_mutex);
    const auto found = m_copied.find({file.status.st_dev, file.status.st_ino});
    // A file system gives the inode number of a deleted file to the next one, so size and time are compared as well.
    if (found == m_copied.end() || found->second.status.st_size != file.status.st_size ||
        !same_time(found->second.status, file.status))
      return false;
    first = found->second.path;
  }
  struct stat original{}, there{};
  const auto above = first.find('/') == std::string::npos ? std::string(".") : first.substr(0, first.rfind('/'));
  const auto base = first.substr(first.rfind('/') + 1); // npos + 1 is 0
  const auto directory = open_below(m_top, above.c_str());
  if (!directory || ::fstatat(directory.get(), base.c_str(), &original, AT_SYMLINK_NOFOLLOW) != 0)
    return false;
  if (::fstatat(pair.to.get(), file.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
      there.st_dev == original.st_dev && there.st_ino == original.st_ino) {
    m_job.counters.add(k_files);
    if (first != file.path)
      count(&CopyReport::kept);
    return true;
  }
  const auto link = [&](const std::string& as) {
    return ::linkat(directory.get(), base.c_str(), pair.to.get(), as.c_str(), 0) == 0;
  };
  const auto made = link_as(file.name, pair.closed, link); // a link is complete at once
  if (made.empty() && (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK))
    return false; // the file system has no hard links, or does not allow more for this file
  if (made.empty())
    m_job.failed(errno, target(file.path));
  else if (move_into_place(pair, made, file.name))
    m_job.counters.add(k_files);
  return true;
}

} // namespace sharefs::tree
