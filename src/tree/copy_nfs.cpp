// copy(): small new files by calls to the NFS server, many at a time (Engine::nfs). What these calls are not made for,
// and what they have failed to do, is done by threads; what is finished, kept or copied again is decided there as well.
#include "base/text.hpp"
#include "tree/copier.hpp"
#include "tree/fault_injection.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>

namespace sharefs::tree {

namespace {

/// A round trip from which on calls of our own are faster than threads that wait for the mount: a little at 5 ms
/// (docs/conda-performance.md, P4).
constexpr std::chrono::microseconds k_worth{5000};
constexpr std::size_t k_most_held_content = 1U << 20U; ///< bytes of one thread

} // namespace

Result<void> Copier::choose_engine() {
  const auto& options = m_job.options;
  if (options.engine == Engine::threads || options.content_only || options.layer)
    return {};
  auto opened =
      NfsTarget::open(m_top, options.reserved ? std::move(*options.reserved) : sys::ReservedSockets(), m_job.pulse);
  if (!opened && options.engine == Engine::nfs)
    return fail(ErrorCode::unsupported, m_to.path + ": cannot be written by NFS calls: " + opened.error(),
                "`--engine auto` uses them only where that is possible");
  if (!opened) {
    m_report.engine_reason = opened.error();
    return {};
  }
  const auto round_trip = static_cast<std::int64_t>((*opened)->round_trip().count());
  m_report.engine_reason = fmt::format("{} answers in {}", (*opened)->server(), format_duration(round_trip));
  m_report.nfs = options.engine == Engine::nfs || (*opened)->round_trip() >= k_worth;
  if (m_report.nfs)
    m_nfs = std::move(*opened);
  return {};
}

/// A whole new file where nobody else comes, which takes two calls. (Holes, attributes and what has other names already
/// would take more of them.)
bool Copier::goes_by_nfs(const Pair& pair, const File& file) const {
  const auto& status = file.status;
  const bool sparse = static_cast<std::uint64_t>(status.st_blocks) * 512U < static_cast<std::uint64_t>(status.st_size);
  return m_nfs && m_nfs->works() && !pair.handle.empty() && in_place(pair, status) && !sparse &&
         static_cast<std::uint64_t>(status.st_size) <= m_nfs->most() && sys::is_nfs3_time(status.st_atim) &&
         sys::is_nfs3_time(status.st_mtim);
}

/// Its content, to be sent; if it is shorter by now, as far as it goes. 0 or errno.
int Copier::read_whole(File& file, mode_t mode) {
  file.remote.emplace(NfsTarget::File{file.name, std::string(static_cast<std::size_t>(file.status.st_size), '\0'), mode,
                                      file.status.st_atim, file.status.st_mtim});
  auto& content = file.remote->content;
  std::size_t size = 0;
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

/// May one more be begun before these are finished? They hold descriptors, or their content.
bool Copier::has_room(const std::vector<File>& files) const {
  std::size_t open = 0;
  std::size_t bytes = 0;
  for (const auto& file : files)
    file.remote ? bytes += file.remote->content.size() : ++open;
  const auto limit = m_job.options.bytes_per_second; // what waits for it is sent in small parts, not all at the end
  const auto most = limit == 0 ? k_most_held_content : std::min<std::uint64_t>(k_most_held_content, limit / 8);
  return open < m_job.at_once() && (bytes == 0 || bytes < most);
}

/// Those that calls have not made go out of `files`, and are returned. The others are on the server's disk.
std::vector<Name> Copier::write_by_nfs(const Pair& pair, std::vector<File>& files, bool last_try) {
  std::vector<NfsTarget::File*> remote;
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
    file.original = check_original(pair, file, last_try);
    if (file.original == Original::same && is_as_wanted(file)) // else its times come after its owner and mode
      remote.push_back(&*file.remote);
  }
  m_nfs->give_times(remote);
  may_be_killed();
  if (m_job.options.verify) {
    m_nfs->read_again(remote);
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
