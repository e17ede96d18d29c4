// copy(): files. Several are written before the first is synced, so that a disk can write them together. Over NFS each
// call that makes or changes a name or an attribute is a round trip, so there are as few of them as possible.
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
  const auto count = m_job.at_once();
  const auto begin = files->next.fetch_add(count);
  if (begin >= files->names.size())
    return leave(pair);
  const auto first = files->names.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = files->names.begin() + static_cast<std::ptrdiff_t>(std::min(begin + count, files->names.size()));
  copy_all(*pair, {first, last}, false);
  m_job.workers.add([this, pair, files] { copy_next(pair, files); });
}

void Copier::copy_all(const Pair& pair, std::span<const Name> names, bool last_try) {
  std::vector<File> files;
  std::vector<std::string> further; // names of files that are copied under another name
  for (const auto& name : names) {
    if (name.type == DT_LNK) {
      copy_link(pair, name.name);
    } else if (m_job.options.link_files && name.type == DT_REG && link_file(pair, name.name)) {
      m_job.counters.add(k_files);
    } else if (auto file = begin(pair, name, true, last_try)) {
      if (file->made.empty())
        further.push_back(file->name);
      else
        files.push_back(std::move(*file));
      if (files.size() >= m_job.at_once())
        end_all(pair, files, last_try);
    }
  }
  end_all(pair, files, last_try);
  // The further names come last. add_name() waits for other threads, which must not wait for files of this thread then.
  for (const auto& name : further)
    add_name(pair, name);
}

/// Syncs and finishes the files that were begun, and empties `files`.
void Copier::end_all(const Pair& pair, std::vector<File>& files, bool last_try) {
  std::vector<Name> again;
  for (auto& file : files) {
    may_be_killed();
    if (::fsync(file.to.get()) != 0)
      file.error_number = errno;
    m_job.counters.add(k_steps);
  }
  for (auto& file : files)
    if (!end(pair, file, last_try))
      again.push_back({file.name, DT_REG});
  files.clear();
  if (!again.empty())
    copy_all(pair, again, true);
}

/// Writes the file under the name File::made and returns it, not yet synced. If `made` is empty, it is another name of
/// a file that is copied elsewhere. nullopt: there is nothing more to do, or it has failed.
std::optional<Copier::File> Copier::begin(const Pair& pair, const Name& name, bool may_link, bool asks) {
  const auto path = pair.below(name.name);
  File file;
  file.name = name.name;
  if (name.type != DT_REG) { // special files must never be opened
    if (!stat_now(pair.fd.get(), name.name.c_str(), file.status))
      changed(path);
    else if (!admits(path, file.status))
      return std::nullopt;
    else if (m_job.options.layer && S_ISCHR(file.status.st_mode) && file.status.st_rdev == 0)
      remove_name(pair, name.name);
    else
      refuse(path, "is " + kind_of(file.status) + ", which is not copied", "move it out of the tree");
    return std::nullopt;
  }
  file.from = open_below(pair.fd.get(), name.name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  const int error = file.from ? 0 : errno;
  if (error == ENOENT) // finish() notices that the directory has changed
    return std::nullopt;
  // open(2) has brought these attributes; end() asks the server again. In a second try (`asks`) the server is asked
  // here, too: while another client has a write delegation, the server returns times that it makes up, and this client
  // caches them (Linux 7.2).
  const auto read_status = [&] {
    return asks ? stat_now(file.from.get(), "", file.status) : ::fstat(file.from.get(), &file.status) == 0;
  };
  if (error == ELOOP || error == ENXIO || (file.from && (!read_status() || !S_ISREG(file.status.st_mode)))) {
    changed(path);
    return std::nullopt;
  }
  if (error != 0) {
    m_job.failed(error, source(path));
    return std::nullopt;
  }
  if (!admits(path, file.status))
    return std::nullopt;
  const auto attributes =
      m_attributes ? read_attributes(file.from.get(), m_job.options.layer) : tl::expected<Attributes, int>();
  if (!attributes) {
    m_job.failed(attributes.error(), source(path));
    return std::nullopt;
  }
  if (!m_job.options.content_only && (has_set_id(file.status) || attributes->capability)) {
    refuse_rights(path);
    return std::nullopt;
  }
  if (file.status.st_nlink > 1 && may_link) {
    const Inode inode{file.status.st_dev, file.status.st_ino};
    if (!claim(inode, path, file.status))
      return file;
    file.claimed = inode;
  }
  const bool kept = is_kept(pair, file, *attributes);
  if (!kept && write(pair, file, *attributes))
    return file;
  settle(file.claimed, kept ? State::done : State::failed);
  return std::nullopt;
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

bool Copier::write(const Pair& pair, File& file, const Attributes& attributes) {
  const auto path = pair.below(file.name);
  const auto give_up = [&](int error, bool of_target) {
    m_job.failed(error, of_target ? target(path) : source(path));
    if (!file.made.empty())
      ::unlinkat(pair.to.get(), file.made.c_str(), 0);
    return false;
  };
  // The file may be made with its final mode only if it already has the right owner and ACL, or if others cannot reach
  // it.
  const bool content_only = m_job.options.content_only;
  const bool ours = file.status.st_uid == m_uid && file.status.st_gid == m_gid;
  const bool wide = !content_only && (ours || pair.closed) && !pair.gives_acl && attributes.values.empty();
  struct stat made{};
  const auto mode = wide ? attributes.narrowed(wanted(file.status).st_mode & 0777U) : S_IRUSR | S_IWUSR;
  if (const int error = make(pair, file, mode, made); error != 0)
    return give_up(error, true);
  if (!content_only) {
    if (const int error = set_attributes(file.to.get(), made, wanted(file.status), attributes, pair.gives_acl);
        error != 0)
      return give_up(error, true);
  }
  may_be_killed();
  const auto hash = copy_content(m_job, file.from.get(), file.status, file.to.get());
  if (!hash)
    return give_up(hash.error().error_number, hash.error().of_target);
  file.hash = *hash;
  file.from.reset();
  return true;
}

/// Checks that the original has not changed since it was read; if it has, the copy is removed.
Copier::Original Copier::check_original(const Pair& pair, File& file, bool last_try) {
  const auto path = pair.below(file.name);
  struct stat now{};
  const bool there = stat_now(pair.fd.get(), file.name.c_str(), now);
  if (there && m_job.options.link_files && now.st_nlink != file.status.st_nlink)
    now.st_ctim = file.status.st_ctim; // this copy itself may have made further names of it
  if (there && same_state(now, file.status))
    return Original::same;
  const int error = errno;
  ::unlinkat(pair.to.get(), file.made.c_str(), 0);
  const bool same_file = !file.claimed || Inode{now.st_dev, now.st_ino} == *file.claimed;
  if (there && !last_try && S_ISREG(now.st_mode)) {
    if (!same_file) // its other names still belong to the old file
      settle(file.claimed, State::failed);
    return Original::again;
  }
  if (there || error != ENOENT) // ENOENT: finish() notices that the directory has changed
    changed(path);
  settle(file.claimed, State::failed);
  return Original::failed;
}

/// Checks the copy and gives it its times and its name. False: the original has changed and must be copied again.
bool Copier::end(const Pair& pair, File& file, bool last_try) {
  const auto path = pair.below(file.name);
  const auto give_up = [&](int error) { // 0: the content of the copy differs
    ::unlinkat(pair.to.get(), file.made.c_str(), 0);
    if (error != 0)
      m_job.failed(error, target(path));
    else
      m_job.failed({ErrorCode::failed, target(path) + ": what is read from the copy is not what was written to it",
                    "look at the disk and the server: `dmesg`", ""});
    settle(file.claimed, State::failed);
    return true;
  };
  if (file.error_number != 0)
    return give_up(file.error_number);
  const auto original = check_original(pair, file, last_try);
  if (original != Original::same)
    return original == Original::failed;
  may_be_killed();
  const auto read = hash_content(m_job, file.to.get(), file.status, true);
  if (!read)
    return give_up(read.error().error_number);
  if (*read != file.hash)
    return give_up(0);
  may_be_killed();
  if (const int error = m_job.options.content_only ? 0 : set_times(file.to.get(), nullptr, file.status); error != 0)
    return give_up(error);
  struct stat made{};
  if (::fstat(file.to.get(), &made) != 0)
    return give_up(errno);
  if (made.st_size != file.status.st_size)
    return give_up(0);
  may_be_killed();
  if (move_into_place(pair, file.made, file.name)) {
    count(&CopyReport::files);
    count(&CopyReport::bytes, static_cast<std::uint64_t>(file.status.st_size));
    m_job.counters.add(k_files);
    settle(file.claimed, State::done);
  } else {
    settle(file.claimed, State::failed);
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
  const auto one = hash_content(m_job, file.from.get(), file.status, false);
  const auto other = hash_content(m_job, fd.get(), there, true);
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
