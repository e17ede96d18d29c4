// copy(): files. Over NFS each call that makes or changes a name or an attribute is a round trip, so there are as few
// of them as possible.
#include "sys/fs/exclusive.hpp"
#include "tree/copier.hpp"
#include "tree/fault_injection.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>

namespace sharefs::tree {

namespace {

constexpr std::string_view k_temporary = ".sharefs-copy-";
constexpr std::size_t k_run_length = 12;

std::string kind_of(const struct stat& status) {
  return S_ISFIFO(status.st_mode) ? "a FIFO" : S_ISSOCK(status.st_mode) ? "a socket" : "a device";
}

/// Hashes a copy. Its clean pages are dropped from this host's cache first; dirty pages stay.
Hashed hash_from_disk(Job& job, int file, const struct stat& status) {
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  return hash_content(job, file, status);
}

} // namespace

bool has_set_id(const struct stat& status) {
  return S_ISREG(status.st_mode) && (status.st_mode & (S_ISUID | S_ISGID)) != 0;
}

/// A temporary name is `.sharefs-copy-`, the 12 letters of the run, `-`, and a number.
bool is_temporary(const std::string& name) {
  const auto rest = std::string_view(name).substr(std::min(name.size(), k_temporary.size()));
  return name.starts_with(k_temporary) && rest.size() > k_run_length + 1 && rest[k_run_length] == '-' &&
         rest.find_first_not_of("0123456789", k_run_length + 1) == std::string_view::npos;
}

std::string Copier::temporary_name() {
  return fmt::format("{}{}-{}", k_temporary, m_run, m_temporaries++);
}

bool Copier::admits(const std::string& path, const struct stat& status) {
  if (!m_job.options.admit)
    return true;
  const auto answer = m_job.options.admit(path, status);
  if (!answer)
    m_job.failed(answer.error());
  return answer && *answer;
}

void Copier::copy_next(const PairPointer& pair, const std::shared_ptr<Files>& files) {
  const auto number = files->next++;
  if (number >= files->names.size())
    return leave(pair);
  copy_entry(*pair, files->names[number]);
  m_job.workers.add([this, pair, files] { copy_next(pair, files); });
}

void Copier::copy_entry(const Pair& pair, const Name& name) {
  if (name.type == DT_LNK)
    copy_link(pair, name.name);
  else if (name.type != DT_REG)
    copy_special(pair, name.name);
  else if (m_job.options.link_files && link_file(pair, name.name))
    m_job.counters.add(k_files);
  else if (!copy_file(pair, name.name, false))
    copy_file(pair, name.name, true);
}

/// Refuses a special file, which must never be opened. In a layer it may be a mark that removes a name.
void Copier::copy_special(const Pair& pair, const std::string& name) {
  const auto path = pair.below(name);
  struct stat status{};
  if (!stat_now(pair.fd.get(), name.c_str(), status))
    return changed(path);
  if (!admits(path, status))
    return;
  if (m_job.options.layer && S_ISCHR(status.st_mode) && status.st_rdev == 0)
    return remove_name(pair, name);
  refuse(path, "is " + kind_of(status) + ", which is not copied", "move it out of the tree");
}

/// Opens the original and reads its status. False: it is not copied.
bool Copier::open_original(const Pair& pair, File& file, bool asks) {
  file.from = open_below(pair.fd.get(), file.name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  const int error = file.from ? 0 : errno;
  if (error == ENOENT) // finish() notices that the directory has changed
    return false;
  // open(2) has brought these attributes; finish_file() asks the server again. In a second try (`asks`) the server is
  // asked here, too: while another client has a write delegation, the server returns times that it makes up, and this
  // client caches them (Linux 7.2).
  const auto read_status = [&] {
    return asks ? stat_now(file.from.get(), "", file.status) : ::fstat(file.from.get(), &file.status) == 0;
  };
  if (error == ELOOP || error == ENXIO || (file.from && (!read_status() || !S_ISREG(file.status.st_mode))))
    changed(file.path);
  else if (error != 0)
    m_job.failed(error, source(file.path));
  else
    return admits(file.path, file.status);
  return false;
}

/// Copies a file, or adds a further name of one that is copied already. False: the original has changed meanwhile and
/// must be copied again.
bool Copier::copy_file(const Pair& pair, const std::string& name, bool last_try) {
  File file{.name = name, .path = pair.below(name)};
  if (!open_original(pair, file, last_try))
    return true;
  const auto attributes = m_job.options.content_only ? tl::expected<Attributes, int>()
                                                     : read_attributes(file.from.get(), m_job.options.layer);
  if (!attributes) {
    m_job.failed(attributes.error(), source(file.path));
    return true;
  }
  if (!m_job.options.content_only && (has_set_id(file.status) || attributes->capability)) {
    refuse_rights(file.path);
    return true;
  }
  std::unique_lock<std::mutex> link_lock;
  if (file.status.st_nlink > 1) {
    link_lock = std::unique_lock(m_link_locks[file.status.st_ino % m_link_locks.size()]);
    if (add_name(pair, file))
      return true;
  }
  if (is_kept(pair, file, *attributes)) {
    note_copied(file);
    return true;
  }
  return !write(pair, file, *attributes) || finish_file(pair, file, last_try);
}

/// True if a file may have its final name before it is finished. Nobody else may be able to see it, and the next run
/// must be able to see that it is unfinished: it gets its original's mtime last, which is older than any mtime that it
/// can have before.
bool Copier::in_place(const Pair& pair, const struct stat& original) const {
  const auto& made = pair.made;
  const auto& time = original.st_mtim;
  return pair.closed && !pair.second_read && !m_job.options.content_only && !m_job.options.layer &&
         (made.tv_sec > time.tv_sec || (made.tv_sec == time.tv_sec && made.tv_nsec > time.tv_nsec));
}

/// Makes the empty file; `status` gets its status. Returns 0 or errno.
int Copier::make(const Pair& pair, File& file, mode_t mode, struct stat& status) {
  constexpr int flags = O_RDWR | O_NONBLOCK | O_NOCTTY;
  may_be_killed();
  if (in_place(pair, file.status)) { // without O_EXCL, which would be one more round trip over NFS
    file.to = sys::open_to_make(pair.to.get(), file.name, flags, mode, m_to_nfs);
    if (file.to && ::fstat(file.to.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
        status.st_size == 0) {
      file.made = file.name;
      return 0;
    } // otherwise the owner has put something there
  }
  const auto name = temporary_name();
  file.to = sys::open_to_make(pair.to.get(), name, flags | O_EXCL, mode, m_to_nfs);
  if (!file.to)
    return errno;
  file.made = name;
  return ::fstat(file.to.get(), &status) == 0 ? 0 : errno;
}

void Copier::discard(const Pair& pair, const File& file) {
  if (!file.made.empty())
    ::unlinkat(pair.to.get(), file.made.c_str(), 0);
}

void Copier::note_copied(const File& file) {
  if (file.status.st_nlink == 1)
    return;
  const std::lock_guard lock(m_mutex);
  m_copied.insert_or_assign({file.status.st_dev, file.status.st_ino}, Copied{file.path, file.status});
}

/// Makes the copy and writes its content. False: that has failed.
bool Copier::write(const Pair& pair, File& file, const Attributes& attributes) {
  const auto give_up = [&](int error, const std::string& path) {
    m_job.failed(error, path);
    discard(pair, file);
    return false;
  };
  // The file may be made with its final mode only if it already has the right owner and ACL, or if others cannot reach
  // it.
  const bool content_only = m_job.options.content_only;
  const bool ours = file.status.st_uid == m_uid && file.status.st_gid == m_gid;
  const bool wide = !content_only && (ours || pair.closed) && !pair.gives_acl && attributes.values.empty();
  struct stat made{};
  const auto mode = wide ? attributes.narrowed(wanted(file.status).st_mode & 0777U) : S_IRUSR | S_IWUSR;
  int error = make(pair, file, mode, made);
  if (error == 0 && !content_only)
    error = set_attributes(file.to.get(), made, wanted(file.status), attributes, pair.gives_acl);
  if (error != 0)
    return give_up(error, target(file.path));
  may_be_killed();
  const auto hash = hash_content(m_job, file.from.get(), file.status, file.to.get());
  if (!hash)
    return give_up(hash.error().error_number, hash.error().of_target ? target(file.path) : source(file.path));
  file.hash = *hash;
  file.from.reset();
  return true;
}

/// Syncs and checks the copy, and gives it its times and its name. False: the original has changed meanwhile.
bool Copier::finish_file(const Pair& pair, File& file, bool last_try) {
  const auto give_up = [&](int error) { // 0: the content of the copy differs
    discard(pair, file);
    if (error != 0)
      m_job.failed(error, target(file.path));
    else
      m_job.failed({ErrorCode::failed, target(file.path) + ": what is read from the copy is not what was written to it",
                    "look at the disk and the server: `dmesg`", ""});
    return true;
  };
  may_be_killed();
  if (::fsync(file.to.get()) != 0)
    return give_up(errno);
  m_job.counters.add(k_steps);
  struct stat now{}, made{};
  const bool there = stat_now(pair.fd.get(), file.name.c_str(), now);
  const bool gone = !there && errno == ENOENT; // finish() notices that the directory has changed
  if (there && m_job.options.link_files && now.st_nlink != file.status.st_nlink)
    now.st_ctim = file.status.st_ctim; // this copy itself may have made further names of it
  if (!there || !same_state(now, file.status)) {
    discard(pair, file);
    if (there && !last_try && S_ISREG(now.st_mode))
      return false;
    if (!gone)
      changed(file.path);
    return true;
  }
  may_be_killed();
  const auto read = hash_from_disk(m_job, file.to.get(), file.status);
  if (!read)
    return give_up(read.error().error_number);
  if (*read != file.hash)
    return give_up(0);
  may_be_killed();
  if (const int error = m_job.options.content_only ? 0 : set_times(file.to.get(), nullptr, file.status); error != 0)
    return give_up(error);
  if (::fstat(file.to.get(), &made) != 0)
    return give_up(errno);
  if (made.st_size != file.status.st_size)
    return give_up(0);
  may_be_killed();
  if (move_into_place(pair, file.made, file.name)) {
    count(&CopyReport::files);
    count(&CopyReport::bytes, static_cast<std::uint64_t>(file.status.st_size));
    m_job.counters.add(k_files);
    note_copied(file);
  }
  may_be_killed();
  return true;
}

bool Copier::move_into_place(const Pair& pair, const std::string& made, const std::string& name) {
  const auto path = pair.below(name);
  if (made == name || ::renameat(pair.to.get(), made.c_str(), pair.to.get(), name.c_str()) == 0)
    return true;
  if (errno == EISDIR && replaces()) {
    remove_below(pair.to.get(), {name, DT_DIR}, path);
    if (::renameat(pair.to.get(), made.c_str(), pair.to.get(), name.c_str()) == 0)
      return true;
  }
  const int error = errno;
  ::unlinkat(pair.to.get(), made.c_str(), 0);
  m_job.failed(error, target(path));
  return false;
}

/// True if an earlier run has finished the file. Only a file that was written, synced and compared has this name. Its
/// size, time and mode show that the original has not changed since, and its content is compared. Files below a layer
/// may have further names elsewhere, so they are never changed in place.
bool Copier::is_kept(const Pair& pair, const File& file, const Attributes& attributes) {
  struct stat there{};
  if (m_job.options.content_only || m_job.options.layer || (!pair.existed && !pair.second_read) ||
      ::fstatat(pair.to.get(), file.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0)
    return false;
  const auto mode = attributes.narrowed(wanted(file.status).st_mode);
  const bool is_original = there.st_dev == file.status.st_dev && there.st_ino == file.status.st_ino;
  if (is_original || !S_ISREG(there.st_mode) || there.st_size != file.status.st_size ||
      !same_time(there, file.status) || (there.st_mode != mode && there.st_mode != mode_without_group(mode)))
    return false;
  const auto fd = open_below(pair.to.get(), file.name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd || ::fstat(fd.get(), &there) != 0 || !S_ISREG(there.st_mode))
    return false;
  const auto one = hash_content(m_job, file.from.get(), file.status);
  const auto other = hash_from_disk(m_job, fd.get(), there);
  if (!one || !other || *one != *other)
    return false;
  const bool complete =
      there.st_uid == file.status.st_uid && there.st_gid == file.status.st_gid && there.st_mode == mode;
  if (there.st_nlink > file.status.st_nlink) { // it has names outside of the copy, so it must not be changed
    const auto theirs = read_attributes(fd.get());
    if (!complete || !theirs || theirs->values != attributes.values)
      return false;
  } else if ((!complete || !attributes.values.empty()) &&
             set_attributes(fd.get(), there, wanted(file.status), attributes, pair.gives_acl) != 0) {
    return false;
  }
  count(&CopyReport::kept);
  m_job.counters.add(k_files);
  m_job.counters.add(k_bytes, static_cast<std::uint64_t>(file.status.st_size));
  return true;
}

} // namespace sharefs::tree
