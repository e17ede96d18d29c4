// copy(): small files made and read by calls to the NFS server, many at a time (Engine::nfs). What these calls are not
// made for, and what they have failed to do, is done by threads; what is finished, kept or copied again is decided
// there as well.
#include "base/text.hpp"
#include "tree/copier.hpp"
#include "tree/fault_injection.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>

namespace sharefs::tree {

namespace {

/// A round trip from which on calls of our own are faster than threads that wait for the mount
/// (docs/conda-performance.md, P4).
constexpr std::chrono::microseconds k_worth_writing{5000}, k_worth_reading{2000};
constexpr std::size_t k_most_held_content = 1U << 20U; ///< bytes of one thread

} // namespace

Result<void> Copier::choose_engine(int original) {
  const auto& options = m_job.options;
  if (options.engine == Engine::threads || options.content_only || options.layer)
    return {};
  auto ports = options.reserved ? std::move(*options.reserved) : ReservedPorts();
  auto& reason = m_report.engine_reason;
  const auto open = [&](int directory, sys::ReservedSockets& reserved, std::chrono::microseconds worth) {
    auto opened = NfsFiles::open(directory, std::move(reserved), m_job.pulse);
    reason += opened ? fmt::format("{} answers in {}", (*opened)->server(),
                                   format_duration(static_cast<std::int64_t>((*opened)->round_trip().count())))
                     : opened.error();
    const bool used = opened && (options.engine == Engine::nfs || (*opened)->round_trip() >= worth);
    return used ? std::move(*opened) : nullptr;
  };
  reason = "the copy: ";
  m_nfs = open(m_top, ports[0], k_worth_writing);
  if (!options.link_files && !options.admit) { // or most of what is read may be left out
    reason += "; the original: ";
    m_source = open(original, ports[1], k_worth_reading);
    m_acls = has_acls(original);
    m_user_attributes = has_user_attributes(original);
  }
  m_report.nfs = m_nfs || m_source;
  if (!m_report.nfs && options.engine == Engine::nfs)
    return fail(ErrorCode::unsupported, m_to.path + ": cannot be copied by NFS calls: " + reason,
                "`--engine auto` uses them only where that is possible");
  return {};
}

/// A small whole file of this file system, with nothing that the calls would not see. A server lets its owner read it
/// whatever its mode, and who may run it as well; the mount does not.
bool Copier::may_be_read(const Pair& pair, const Name& name, struct stat& status) {
  if (name.type != DT_REG ||
      ::fstatat(pair.fd.get(), name.name.c_str(), &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0)
    return false;
  const mode_t only_run = (status.st_mode & 0111U) & ~(status.st_mode >> 2U);
  if (!S_ISREG(status.st_mode) || has_set_id(status) || (status.st_mode & S_IRUSR) == 0 || only_run != 0 ||
      status.st_dev != pair.status.st_dev || is_sparse(status) ||
      static_cast<std::uint64_t>(status.st_size) > m_source->most() ||
      (m_user_attributes && may_have_attributes(pair.fd.get(), name.name)))
    return false;
  const std::lock_guard lock(m_mutex);
  return status.st_nlink == 1 || !m_claims.contains({status.st_dev, status.st_ino});
}

/// The first of `names`, as many as there is room for: their content, where it came whole from a file that was the same
/// before and after; else what was seen before. How many names that were.
std::size_t Copier::read_by_nfs(const Pair& pair, std::span<const Name> names, std::map<std::string, File>& into) {
  if (!m_source || !m_source->works() || ((pair.existed || pair.again) && !m_job.options.verify))
    return names.size();
  std::vector<NfsFiles::File> files;
  std::size_t taken = 0;
  for (std::size_t bytes = 0; taken < names.size() && bytes < most_held(); ++taken) {
    NfsFiles::File file;
    file.name = names[taken].name;
    if (!may_be_read(pair, names[taken], file.attributes))
      continue;
    file.size = static_cast<std::uint32_t>(file.attributes.st_size);
    file.handle = m_source->handle_of(pair.fd.get(), file.name.c_str(), file.attributes);
    if (file.handle.empty())
      continue;
    bytes += file.size;
    files.push_back(std::move(file));
  }
  std::vector<NfsFiles::File*> asked;
  for (auto& file : files)
    asked.push_back(&file);
  m_source->read(asked, m_acls);
  for (auto& file : files) {
    auto& found = into[file.name];
    found.status = file.attributes;
    if (!file.read)
      continue;
    found.content = std::move(file.content);
    found.original = Original::same;
    count(&CopyReport::read_by_nfs);
  }
  return taken;
}

/// A whole new file where nobody else comes, which takes two calls. (Holes, attributes and what has other names already
/// would take more of them.)
bool Copier::goes_by_nfs(const Pair& pair, const File& file) const {
  const auto& status = file.status;
  return m_nfs && m_nfs->works() && !pair.handle.empty() && in_place(pair, status) && !is_sparse(status) &&
         static_cast<std::uint64_t>(status.st_size) <= m_nfs->most() && sys::is_nfs3_time(status.st_atim) &&
         sys::is_nfs3_time(status.st_mtim);
}

/// Its content, to be sent; if it is shorter by now, as far as it goes. 0 or errno.
int Copier::read_whole(File& file, mode_t mode) {
  file.remote.emplace(NfsFiles::File{file.name, std::string(static_cast<std::size_t>(file.status.st_size), '\0'), mode,
                                     file.status.st_atim, file.status.st_mtim});
  auto& content = file.remote->content;
  if (file.content)
    content = std::move(*file.content);
  std::size_t size = file.content ? content.size() : 0;
  while (size < content.size()) {
    const ssize_t count =
        ::pread(file.from.get(), content.data() + size, content.size() - size, static_cast<off_t>(size));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    if (count == 0)
      break;
    size += static_cast<std::size_t>(count);
  }
  content.resize(size);
  file.hash = hash_text(content);
  file.made = file.name; // by write_by_nfs()
  file.from.reset();
  m_job.wait_for(size);
  m_job.pulse.add(k_bytes, size);
  return 0;
}

/// What waits for the limit is sent in small parts, not all at the end.
std::size_t Copier::most_held() const {
  const auto limit = m_job.options.bytes_per_second;
  return limit == 0 ? k_most_held_content : std::clamp<std::uint64_t>(limit / 8, 1, k_most_held_content);
}

/// May one more be begun before these are finished? They hold descriptors, or their content.
bool Copier::has_room(const std::vector<File>& files) const {
  std::size_t open = 0;
  std::size_t bytes = 0;
  for (const auto& file : files)
    file.remote ? bytes += file.remote->content.size() : ++open;
  return open < m_job.at_once() && (bytes == 0 || bytes < most_held());
}

/// Those that calls have not made go out of `files`, and are returned. The others are on the server's disk.
std::vector<Name> Copier::write_by_nfs(const Pair& pair, std::vector<File>& files, bool last_try) {
  std::vector<NfsFiles::File*> remote;
  for (auto& file : files)
    if (file.remote)
      remote.push_back(&*file.remote);
  may_be_killed();
  m_nfs->make(pair.handle, remote);
  may_be_killed();
  remote.clear();
  for (auto& file : files) {
    if (!file.remote || !file.remote->done)
      continue;
    file.remote->content = {};
    if (!file.original)
      file.original = check_original(pair, file, last_try);
    if (file.original == Original::same && is_as_wanted(file)) // else its times come after its owner and mode
      remote.push_back(&*file.remote);
  }
  m_nfs->give_times(remote);
  may_be_killed();
  if (m_job.options.verify) {
    m_nfs->read(remote);
    for (auto& file : files)
      if (file.remote && file.remote->read) {
        file.read = hash_text(file.remote->content);
        file.remote->content = {};
      }
  }
  std::vector<Name> left;
  std::erase_if(files, [&](const File& file) {
    if (!file.remote || file.remote->done)
      return false;
    // A call without an answer may be done later: then on a file that has no name any more, or, if it is the one that
    // makes the file, not at all, because another has its name.
    if (file.remote->made)
      ::unlinkat(pair.to.get(), file.name.c_str(), 0);
    left.push_back({file.name, DT_REG});
    return true;
  });
  return left;
}

/// Its owner, group and mode, as the server made it.
bool Copier::is_as_wanted(const File& file) const {
  const auto& made = file.remote->attributes;
  const auto owner = wanted(file.status);
  const auto is = [](auto is_now, auto is_to_be) {
    return is_to_be == static_cast<decltype(is_to_be)>(-1) || is_now == is_to_be;
  };
  return is(made.st_uid, owner.st_uid) && is(made.st_gid, owner.st_gid) && made.st_mode == owner.st_mode;
}

/// Through the mount; it is the one that was made by its handle, and gets what it lacks. 0 or errno.
int Copier::open_remote(const Pair& pair, File& file) {
  file.to = open_below(pair.to.get(), file.made.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat made{};
  if (!file.to || ::fstat(file.to.get(), &made) != 0)
    return errno;
  if (!S_ISREG(made.st_mode) || made.st_ino != file.remote->attributes.st_ino || made.st_nlink != 1)
    return EEXIST; // the owner has put something else there
  if (is_as_wanted(file))
    return 0;
  const auto given = give_attributes(file.to.get(), made, wanted(file.status), {}, pair.hands_on);
  if (given)
    count(*given);
  return given ? 0 : given.error();
}

/// What calls have made in a directory is there for who comes through the mount: a new list of its names brings what
/// all of them are (READDIRPLUS), so that none is asked for alone.
void Copier::look_at_made(const Pair& pair) {
  std::map<std::string, sys::Nfs3Attributes> made;
  {
    const std::lock_guard lock(m_mutex);
    if (auto found = m_made.extract(&pair))
      made = std::move(found.mapped());
  }
  std::vector<Name> names;
  struct stat now{};
  if (made.empty())
    return;
  stat_now(pair.to.get(), "", now); // or this host would remember the names of the time before
  if (const int error = read_names(pair.to.get(), names); error != 0)
    return m_job.failed(error, target(pair.path));
  for (const auto& [name, wanted] : made) {
    const bool there = ::fstatat(pair.to.get(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there || now.st_ino != wanted.st_ino || now.st_mode != wanted.st_mode || now.st_size != wanted.st_size ||
        !same_time(now, wanted))
      m_job.failed({ErrorCode::conflict, target(pair.below(name)) + ": is not what was written there",
                    "see who else changes it, then run the command again: it goes on from here", ""});
  }
}

} // namespace sharefs::tree
