// copy(): the directories. Each is made before its entries, and gets its mode and times after them.
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/try.hpp"
#include "sys/fs/exclusive.hpp"
#include "sys/fs/files.hpp"
#include "tree/copier.hpp"
#include "tree/fault_injection.hpp"

#include <algorithm>
#include <cerrno>
#include <set>
#include <sys/file.h>
#include <sys/xattr.h>

namespace sharefs::tree {

namespace {

/// The number of threads that work in one directory. The kernel lets only one of them make a file at a time; the others
/// write, sync and read meanwhile.
constexpr std::size_t k_threads_in_directory = 4;

/// True if a file in one directory can be linked into the other. link(2) does not cross mounts, not even two mounts of
/// the same file system.
bool on_one_mount(int one, int other) {
  struct statx a{};
  struct statx b{};
  constexpr int k_flags = AT_EMPTY_PATH | AT_NO_AUTOMOUNT;
  return ::statx(one, "", k_flags, STATX_MNT_ID, &a) == 0 && ::statx(other, "", k_flags, STATX_MNT_ID, &b) == 0 &&
         a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor && a.stx_mnt_id == b.stx_mnt_id;
}

/// Gives the owner all rights on a directory, which an earlier run may have finished without them. If this call fails,
/// the next one in the directory fails too, and is reported.
void make_usable(int directory) {
  struct stat status{};
  if (::fstat(directory, &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU)
    ::fchmod(directory, (status.st_mode & 07777U) | S_IRWXU);
}

void set_closed(Pair& pair) {
  struct stat status{};
  pair.closed = !pair.existed && ::fstat(pair.to.get(), &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  pair.made = status.st_mtim;
}

/// True if it is the directory `wanted`, or lies below it.
bool lies_in(int directory, const struct stat& wanted) {
  struct stat last{};
  struct stat status{};
  sys::Fd here(::openat(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  while (here && stat_now(here.get(), "", status)) {
    if (status.st_dev == wanted.st_dev && status.st_ino == wanted.st_ino)
      return true;
    if (status.st_dev == last.st_dev && status.st_ino == last.st_ino)
      return false; // this is the root
    last = status;
    here.reset(::openat(here.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  return false;
}

} // namespace

std::string Copier::source(const std::string& relative) const {
  return join_path(m_from.path, relative);
}

std::string Copier::target(const std::string& relative) const {
  return join_path(m_to.path, relative);
}

void Copier::count(std::uint64_t CopyReport::* what, std::uint64_t number) {
  const std::lock_guard lock(m_mutex);
  m_report.*what += number;
}

void Copier::changed(const std::string& relative) {
  m_job.failed({ErrorCode::conflict, source(relative) + ": changed while it was copied",
                "see who writes there, then run the command again: it goes on from here", ""});
}

void Copier::refuse(const std::string& relative, const std::string& reason, const std::string& hint) {
  m_job.failed({ErrorCode::unsupported, source(relative) + ": " + reason, hint, ""});
}

void Copier::refuse_rights(const std::string& relative) {
  refuse(relative, "gives rights to who runs it (set-id bits or capabilities), and is not copied",
         "take them away (`chmod ug-s`, `setcap -r`), or move it out of the tree");
}

Result<CopyReport> Copier::run(Found to) {
  m_run = random_letters(12);
  TRY_ASSIGN(auto from, find_tree(m_from));
  if (to.walked.parent_missing)
    return fail(errno_error(ENOENT, parent_path(m_to.path)));
  sys::Fd above(::openat(to.walked.directory.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto top = start(std::move(from), std::move(to));
  if (!top)
    return fail(top.error());
  struct stat made{};
  if (::fstat(m_top, &made) != 0)
    return fail(errno_error(errno, m_to.path));
  m_report.device = made.st_dev;
  m_report.inode = made.st_ino;
  m_job.workers.add([this, top = *top] { fill(top); });
  m_job.work();
  TRY(m_job.result());
  TRY(sys::sync_directory(above.get(), m_to.path));
  return m_report;
}

Result<PairPointer> Copier::start(Found from, Found to) {
  auto top = std::make_shared<Pair>(m_job.workers);
  top->name = to.walked.name;
  top->fd = std::move(from.fd);
  if (!stat_now(top->fd.get(), "", top->status))
    return fail(errno_error(errno, m_from.path));
  m_capabilities = has_capabilities(top->fd.get());
  const int nearest = to.fd ? to.fd.get() : to.walked.directory.get();
  if (m_job.options.link_files && !on_one_mount(top->fd.get(), nearest))
    return fail(ErrorCode::failed,
                m_to.path + ": is not on the mounted file system of " + m_from.path +
                    ", and its files cannot be further names of the files there",
                "choose a destination beside the original");
  if (m_job.options.layer && !read_marks(*top))
    return fail(m_job.result().error());
  if (lies_in(nearest, top->status))
    return fail(ErrorCode::failed, m_to.path + ": lies in what is to be copied", "choose another destination");
  top->existed = static_cast<bool>(to.fd);
  auto made = top->existed ? tl::expected<sys::Fd, int>(std::move(to.fd))
                           : sys::make_directory(to.walked.directory.get(), top->name, S_IRWXU);
  if (!made)
    return fail(errno_error(made.error(), m_to.path));
  top->to = std::move(*made);
  m_top = top->to.get();
  m_to_nfs = sys::is_on_nfs(m_top);
  // NFS has no such locks for directories. Two copies at the same time only disturb each other there.
  if (::flock(m_top, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return fail(ErrorCode::busy, m_to.path + ": another copy is at work", "wait for it, or stop it");
  std::vector<Name> there;
  if (const int error = read_names(m_top, there); error != 0)
    return fail(errno_error(error, m_to.path));
  make_usable(m_top);
  top->existed = !there.empty();
  set_closed(*top);
  top->inherited = true;
  top->gives_acl = has_default_acl(m_top);
  return top;
}

void Copier::enter(const PairPointer& parent, const std::string& name) {
  auto pair = std::make_shared<Pair>(m_job.workers);
  pair->parent = parent;
  pair->name = name;
  pair->path = parent->below(name);
  pair->depth = parent->depth + 1;
  pair->fd = open_below(parent->fd.get(), name.c_str());
  const bool there = pair->fd && stat_now(pair->fd.get(), "", pair->status);
  if (!there && (errno == ELOOP || errno == ENOTDIR))
    changed(pair->path);
  else if (!there && errno != ENOENT) // ENOENT: finish() of the parent directory notices that its names have changed
    m_job.failed(errno, source(pair->path));
  pair->opaque = parent->opaque;
  if (!there || !admits(pair->path, pair->status) || (m_job.options.layer && !read_marks(*pair)))
    return leave(parent);
  if (pair->depth >= k_deepest)
    m_job.failed(ENAMETOOLONG, source(pair->path));
  else if (open_copy(*pair, parent->to.get(), parent->gives_acl)) {
    {
      const std::lock_guard lock(m_mutex);
      parent->entered[name] = pair->status.st_ino;
    }
    return fill(pair);
  }
  leave(parent);
}

/// Reads the marks of overlayfs on a directory of a layer. False: the directory cannot be copied.
bool Copier::read_marks(Pair& pair) {
  const auto attributes = read_attributes(pair.fd.get(), true);
  if (!attributes)
    m_job.failed(attributes.error(), source(pair.path));
  else
    pair.opaque = pair.opaque || attributes->opaque;
  return attributes.has_value();
}

bool Copier::was_entered(const Pair& pair, const std::string& name) {
  struct stat status{};
  const std::lock_guard lock(m_mutex);
  const auto found = pair.entered.find(name);
  return found != pair.entered.end() && stat_now(pair.fd.get(), name.c_str(), status) && status.st_ino == found->second;
}

/// Makes the directory of the copy, or opens the one that an earlier run has made.
bool Copier::open_copy(Pair& pair, int parent, bool parent_gives_acl) {
  may_be_killed();
  pair.existed = ::mkdirat(parent, pair.name.c_str(), S_IRWXU) != 0;
  if (pair.existed && errno == EACCES && m_job.options.layer) { // fill() did not make the parent usable
    make_usable(parent);
    pair.existed = ::mkdirat(parent, pair.name.c_str(), S_IRWXU) != 0;
  }
  if (pair.existed && errno != EEXIST) {
    m_job.failed(errno, target(pair.path));
    return false;
  }
  pair.to = open_below(parent, pair.name.c_str());
  if (!pair.to && (errno == ELOOP || errno == ENOTDIR) && replaces()) {
    make_usable(parent);
    remove_below(parent, {pair.name, DT_REG}, pair.path);
    pair.existed = ::mkdirat(parent, pair.name.c_str(), S_IRWXU) != 0;
    pair.to = open_below(parent, pair.name.c_str());
  }
  if (!pair.to) {
    if (errno == ELOOP || errno == ENOTDIR)
      m_job.failed({ErrorCode::conflict, target(pair.path) + ": expected a directory, found something else",
                    "move it away, then run the command again", ""});
    else
      m_job.failed(errno, target(pair.path));
    return false;
  }
  if (!m_job.options.layer)
    make_usable(pair.to.get());
  set_closed(pair);
  pair.inherited = pair.existed || parent_gives_acl;
  pair.gives_acl = pair.inherited && has_default_acl(pair.to.get());
  return true;
}

/// Adds tasks for all entries of the directory.
void Copier::fill(const PairPointer& pair) {
  std::vector<Name> names;
  if (const int error = read_names(pair->fd.get(), names); error != 0) {
    m_job.failed(error, source(pair->path));
    return leave(pair);
  }
  m_job.counters.add(k_steps);
  // A directory of a layer that contains only directories does not change other entries of the copy.
  const bool nothing_else = m_job.options.layer && !pair->opaque &&
                            std::ranges::all_of(names, [](const Name& name) { return name.type == DT_DIR; });
  if (m_job.options.layer && !nothing_else)
    make_usable(pair->to.get());
  if ((pair->existed || pair->second_read) && !nothing_else)
    clean(*pair, names);
  std::vector<Name> others;
  for (auto& name : names) {
    if (name.type != DT_DIR) {
      others.push_back(std::move(name));
      continue;
    }
    if (pair->second_read && was_entered(*pair, name.name))
      continue;
    ++pair->open;
    m_job.workers.add_opening([this, pair, name = name.name] { enter(pair, name); });
  }
  const auto threads =
      std::min(k_threads_in_directory, (others.size() + k_threads_in_directory - 1) / k_threads_in_directory);
  const auto files = std::make_shared<Files>(std::move(others));
  for (std::size_t i = 0; i < threads; ++i) {
    ++pair->open;
    m_job.workers.add([this, pair, files] { copy_next(pair, files); });
  }
  leave(pair);
}

/// Removes unfinished files of an interrupted copy. Any other entry that the original does not have is an error, or is
/// removed as well; below a layer it stays.
void Copier::clean(const Pair& pair, const std::vector<Name>& wanted) {
  std::vector<Name> found;
  if (const int error = read_names(pair.to.get(), found); error != 0)
    return m_job.failed(error, target(pair.path));
  std::set<std::string_view> names;
  for (const auto& name : wanted)
    names.insert(name.name);
  for (const auto& name : found) {
    if (names.contains(name.name) || (pair.path.empty() && name.name == m_job.options.leave))
      continue;
    if (is_temporary(name.name) || pair.opaque || m_job.options.remove_others)
      remove_below(pair.to.get(), name, pair.below(name.name));
    else if (!replaces())
      m_job.failed({ErrorCode::conflict, target(pair.below(name.name)) + ": is not in " + source(pair.path),
                    "move it away, then run the command again", ""});
  }
}

void Copier::remove_below(int directory, const Name& name, const std::string& path) {
  m_job.counters.add(k_steps);
  if (std::ranges::count(path, '/') >= k_deepest)
    return m_job.failed(ENAMETOOLONG, target(path));
  if (name.type == DT_DIR) {
    std::vector<Name> names;
    const auto inside = open_below(directory, name.name.c_str());
    if (inside && ::fchmod(inside.get(), S_IRWXU) != 0 &&
        errno != EPERM) // its mode may lack the owner's write permission
      return m_job.failed(errno, target(path));
    if (const int error = inside ? read_names(inside.get(), names) : errno; error != 0)
      return m_job.failed(error, target(path));
    for (const auto& one : names)
      remove_below(inside.get(), one, path + "/" + one.name);
  }
  if (::unlinkat(directory, name.name.c_str(), name.type == DT_DIR ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
    m_job.failed(errno, target(path));
}

/// Notes that one part of `pair` is done. After the last part the directory is finished, which is one part of its
/// parent directory.
void Copier::leave(PairPointer pair) {
  while (pair && --pair->open == 0 && finish(pair))
    pair = std::static_pointer_cast<Pair>(pair->parent);
}

/// True if the copy of a directory of a layer already has the right attributes. overlayfs has such directories whose
/// attributes were changed and changed back.
bool Copier::is_unchanged(const Pair& pair, const struct stat& made, const Attributes& attributes) const {
  auto original = wanted(pair.status);
  original.st_mode = attributes.narrowed(original.st_mode);
  const auto attributes_there = read_attributes(pair.to.get());
  return made.st_mode == original.st_mode && made.st_uid == original.st_uid && made.st_gid == original.st_gid &&
         same_time(made, original) && attributes_there && attributes_there->values.empty() && attributes.values.empty();
}

/// Gives the copy of a directory its attributes and times. False: the original has changed, and its names are read
/// again.
bool Copier::finish(const PairPointer& pair) {
  struct stat now{};
  if (!stat_now(pair->fd.get(), "", now)) {
    m_job.failed(errno, source(pair->path));
    return true;
  }
  if (!same_state(now, pair->status)) {
    if (pair->second_read) {
      changed(pair->path);
      return true;
    }
    pair->second_read = true;
    pair->status = now;
    pair->open = 1;
    m_job.workers.add([this, pair] { fill(pair); });
    return false;
  }
  may_be_killed();
  if (m_job.options.content_only) {
    if (::fsync(pair->to.get()) != 0)
      m_job.failed(errno, target(pair->path));
    return true;
  }
  const auto attributes = read_attributes(pair->fd.get(), m_job.options.layer);
  struct stat made{};
  if (!attributes || ::fstat(pair->to.get(), &made) != 0) {
    m_job.failed(attributes ? errno : attributes.error(), source(pair->path));
    return true;
  }
  if (m_job.options.layer && pair->existed && is_unchanged(*pair, made, *attributes))
    return true;
  if (pair->inherited && pair->gives_acl)
    ::fremovexattr(pair->to.get(), "system.posix_acl_default"); // set_attributes() sets that of the original
  int error = set_attributes(pair->to.get(), made, wanted(pair->status), *attributes, pair->inherited);
  if (error == 0)
    error = set_times(pair->to.get(), nullptr, pair->status);
  if (error == 0 && ::fsync(pair->to.get()) != 0)
    error = errno;
  if (error != 0)
    m_job.failed(error, target(pair->path));
  return true;
}

namespace {

/// Makes the directory of the copy if it is missing, and closes it to all but this user. The reader's directories in it
/// belong to the reader until they are finished, so nobody may enter the copy until its top is finished, which is last.
Result<void> close_to_reader(Found& to, const Place& place) {
  if (to.walked.parent_missing)
    return {}; // Copier::run() fails
  if (!to.fd) {
    auto made = sys::make_directory(to.walked.directory.get(), to.walked.name, S_IRWXU);
    if (!made)
      return fail(errno_error(made.error(), place.path));
    to.fd = std::move(*made);
  }
  const bool closed = ::fchown(to.fd.get(), ::geteuid(), ::getegid()) == 0 && ::fchmod(to.fd.get(), S_IRWXU) == 0;
  return closed ? Result<void>{} : fail(errno_error(errno, place.path));
}

} // namespace

Result<CopyReport> copy(const Place& from, const Place& to, const Options& options, const OnProgress& progress) {
  return watched(from.path, options, progress, [&](const sys::ProgressCounters& counters) -> Result<CopyReport> {
    TRY_ASSIGN(auto target, find(to));
    if (options.reader)
      TRY(close_to_reader(target, to));
    TRY(become_reader(options));
    return Copier(from, to, options, counters).run(std::move(target));
  });
}

} // namespace sharefs::tree
