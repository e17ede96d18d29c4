#include "sys/leases/lease.hpp"

#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/find_processes.hpp"
#include "sys/fs/exclusive.hpp"
#include "sys/process/interrupt.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <thread>

namespace sharefs::sys {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t k_largest_lease = 4096;
constexpr auto k_poll = 100ms;
constexpr auto k_least_wait = 2000ms; ///< for a lease that was free when it was read

/// Identifies a lease file, and shows whether its holder still touches it.
struct Stamp {
  std::uint64_t inode = 0;
  std::int64_t seconds = 0, nanoseconds = 0; ///< mtime
  friend bool operator==(const Stamp&, const Stamp&) = default;
};
template <FieldsOf<Stamp> S> auto fields(S& s) {
  return named("inode", s.inode, "seconds", s.seconds, "nanoseconds", s.nanoseconds);
}

struct Attempt {
  bool taken = false;
  Stamp stamp;                       ///< of our file, or of the other holder's
  std::string text;                  ///< the content of that file
  std::chrono::seconds untouched{0}; ///< how long the other holder has not touched it, by the clock of the server
};
template <FieldsOf<Attempt> A> auto fields(A& a) {
  return named("taken", a.taken, "stamp", a.stamp, "text", a.text, "untouched", a.untouched);
}

Stamp stamp_of(const struct stat& status) {
  return {status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

/// Finds the directory of the lease and its name there.
Result<Walked> find_lease(const std::string& root, const std::string& path) {
  TRY_ASSIGN(auto walked, walk_from(root, path, {.links = Links::trusted}));
  if (walked.parent_missing)
    return fail(errno_error(ENOENT, parent_path(path)));
  return walked;
}

/// Reads the file as it is on the server now: open(2) asks the server even if the client has the attributes in its
/// cache. Returns 0 or errno.
int read_lease(const Walked& at, Stamp& stamp, std::string* text) {
  const Fd fd(::openat(at.directory.get(), at.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0)
    return errno;
  stamp = stamp_of(status);
  return text != nullptr && S_ISREG(status.st_mode) ? read_all(fd.get(), *text, k_largest_lease) : 0;
}

/// Tries once to take the lease: writes a temporary file and gives it the lease's name by link(2).
Result<Attempt> try_to_take(const std::string& root, const std::string& path, const std::string& text) {
  TRY_ASSIGN(const auto at, find_lease(root, path));
  const int directory = at.directory.get();
  const auto temporary = at.name + "." + random_letters(12);
  const Fd fd = create_file(directory, temporary, 0644);
  struct stat status{};
  if (!fd)
    return fail(errno_error(errno, path));
  int error = write_all(fd.get(), text) && ::fsync(fd.get()) == 0 ? 0 : errno;
  // On a full disk the file stays empty, because a command that frees space needs the lease, too.
  const bool empty = error == ENOSPC || error == EDQUOT;
  if (empty)
    error = ::ftruncate(fd.get(), 0) == 0 ? 0 : errno;
  bool taken = false;
  if (error == 0) {
    // If the answer of the server was lost, the repeated call returns EEXIST. A link count of 2 shows that the link was
    // made (open(2), O_EXCL).
    error = ::linkat(directory, temporary.c_str(), directory, at.name.c_str(), 0) == 0 ? 0 : errno;
    const bool counted = ::fstatat(directory, temporary.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    taken = error == 0 || (counted && status.st_nlink == 2);
    if (taken && !counted) { // without its inode number nobody would keep the lease, or know that it is ours
      error = errno;
      ::unlinkat(directory, at.name.c_str(), 0);
    }
    taken = taken && counted;
  }
  ::unlinkat(directory, temporary.c_str(), 0);
  if (taken)
    return Attempt{true, stamp_of(status), empty ? "" : text};
  if (error != EEXIST)
    return fail(errno_error(error, path));
  Attempt result;
  error = read_lease(at, result.stamp, &result.text);
  if (error == ELOOP)
    return fail(ErrorCode::conflict, path + ": is a symbolic link, which no command of sharefs has made",
                "see whose it is (`ls -l`), and remove it");
  if (error != 0 && error != ENOENT) // ENOENT: the other holder has released it, and the next attempt may succeed
    return fail(errno_error(error, path));
  result.untouched = std::chrono::seconds(status.st_mtim.tv_sec - result.stamp.seconds);
  return result;
}

/// Removes the file of a dead holder if it still has the stamp `seen`; a newer file is kept.
Result<void> remove_lease(const std::string& root, const std::string& path, const Stamp& seen) {
  TRY_ASSIGN(const auto at, find_lease(root, path));
  const int directory = at.directory.get();
  const auto aside = at.name + ".dead." + random_letters(12);
  if (::renameat(directory, at.name.c_str(), directory, aside.c_str()) != 0)
    return errno == ENOENT ? Result<void>{} : fail(errno_error(errno, path));
  struct stat status{};
  const bool another =
      ::fstatat(directory, aside.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && stamp_of(status) != seen;
  // A newer file gets its name back. If another host has taken the name by now, the holder of the renamed file notices
  // that in check().
  const bool kept =
      another && ::linkat(directory, aside.c_str(), directory, at.name.c_str(), 0) != 0 && errno != EEXIST;
  const int error = errno;
  ::unlinkat(directory, aside.c_str(), 0);
  return kept ? fail(errno_error(error, path)) : Result<void>{};
}

/// True if the file is ours. The text is compared as well, because the next holder's file may get the same inode
/// number. An error of the disk or the server says nothing about whose it is.
Result<bool> is_ours(const Walked& at, const Lease::Own& own) {
  Stamp now;
  std::string text;
  const int error = read_lease(at, now, &text);
  if (error != 0 && error != ENOENT)
    return fail(errno_error(error, at.resolved));
  return error == 0 && now.inode == own.inode && text == own.text;
}

/// Touches the file until SIGTERM or until another host has the lease, then removes it. It runs in the keeper process.
void keep_lease(const std::string& root, const LeaseRequest& request, const Lease::Own& own, pid_t parent) {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM); // the lease is also released if the parent is killed
  const auto at = find_lease(root, request.path);
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(request.touch_every);
  const timespec pause{whole.count(), std::chrono::nanoseconds(request.touch_every - whole).count()};
  bool ours = at.has_value();
  while (ours && ::getppid() == parent && ::sigtimedwait(&ends, nullptr, &pause) < 0) {
    const auto read = is_ours(*at, own);
    ours = read.value_or(true);
    if (read && ours)
      ::utimensat(at->directory.get(), at->name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }
  if (ours && is_ours(*at, own).value_or(false))
    ::unlinkat(at->directory.get(), at->name.c_str(), 0);
}

/// Identifies the processes that this one can see: the boot, and the PID namespace of a container, which may have the
/// name of its host.
std::string boot_of(const Identity& self) {
  return self.pid_namespace.empty() ? self.boot_id : self.boot_id + "+" + self.pid_namespace;
}

/// True if the holder is known to be dead. Another boot under this host's name may be an earlier one, or another host
/// that was cloned from this one: that holder is dead if it does not touch its file. So is one that /proc hides.
bool is_gone(System& system, const std::optional<LeaseHolder>& holder, const Identity& self, bool expired) {
  if (!holder || holder->host != self.hostname || self.boot_id.empty())
    return false;
  const auto ended =
      holder->boot_id == boot_of(self) ? has_ended(system.files(), holder->pid, holder->start) : std::nullopt;
  return ended.value_or(expired);
}

} // namespace

std::string LeaseHolder::text() const {
  return to_utf8(fmt::format("{} on {} (process {}, `{}`)", user, host, pid, what));
}

Result<Lease> Lease::take(System& system, const LeaseRequest& request,
                          const std::function<void(const LeaseHolder& holder)>& waiting) {
  const auto self = system.identity();
  const LeaseHolder us{self.hostname, boot_of(self),
                       self.pid,      process_start(system.files(), self.pid).value_or(0),
                       self.user,     std::chrono::system_clock::to_time_t(system.now()),
                       request.what};
  const auto text = json_of(us, JsonTexts::exact).dump() + "\n";
  const auto& root = system.files().root();
  const auto end = deadline_in(request.wait);
  Stamp seen;
  auto since = Clock::now();
  for (;;) {
    TRY_ASSIGN(
        const auto tried,
        call(std::nullopt, request.deadline, [&] { return try_to_take(root, request.path, text); }, interrupted));
    if (tried.taken) {
      const pid_t parent = ::getpid();
      const Own own{tried.stamp.inode, tried.text};
      auto keeper = WorkingChild::start(std::nullopt, [&](int /*pipe*/) { keep_lease(root, request, own, parent); });
      if (!keeper) {
        static_cast<void>(
            call(std::nullopt, request.deadline, [&] { return remove_lease(root, request.path, tried.stamp); }));
        return fail(keeper.error());
      }
      return Lease(std::move(*keeper), request, root, own);
    }
    if (tried.stamp != seen) {
      seen = tried.stamp;
      since = Clock::now();
    }
    const auto holder = from_json<LeaseHolder>(tried.text, k_largest_lease);
    const bool is_free = tried.stamp.inode == 0; // the file was removed between link(2) and the read
    const bool gone = is_gone(system, holder, self, tried.untouched >= request.expires_after);
    if (!is_free && (gone || Clock::now() - since >= request.expires_after)) {
      TRY(call(std::nullopt, request.deadline, [&] { return remove_lease(root, request.path, seen); }));
      continue;
    }
    const auto who = holder ? holder->text() : "somebody";
    if (interrupted())
      return fail(ErrorCode::interrupted, "interrupted");
    if (Clock::now() >= end + (is_free ? k_least_wait : 0ms)) // others may make and remove it all the time
      return fail(
          ErrorCode::busy, request.path + ": " + who + " is at work",
          "wait for it (`--wait 10min`); if that host is gone for good, wait a minute longer: then its place is "
          "taken over");
    if (waiting && holder)
      waiting(*holder);
    std::this_thread::sleep_for(k_poll); // NOLINT: there is no event for a change by another host
  }
}

Result<void> Lease::check() {
  const auto check_file = [&]() -> Result<bool> {
    TRY_ASSIGN(const auto at, find_lease(m_root, m_request.path));
    return is_ours(at, m_own);
  };
  TRY_ASSIGN(const auto ours, call(std::nullopt, m_request.deadline, check_file));
  return ours ? Result<void>{}
              : fail(ErrorCode::conflict, m_request.path + " is not ours any more: this host was out of reach too long",
                     "run the command again");
}

Lease::~Lease() {
  if (!m_keeper)
    return;
  ::kill(m_keeper->process().pid(), SIGTERM);
  if (!m_keeper->process().reap_until(deadline_in(2s)))
    m_keeper->process().kill_and_reap();
  if (m_keeper->process().exit_code() == 0)
    return; // the keeper has removed the file
  // A keeper that got the signal before it waited for signals has left the file.
  static_cast<void>(call(std::nullopt, 2s, [&]() -> Result<bool> {
    const auto at = find_lease(m_root, m_request.path);
    return at && is_ours(*at, m_own).value_or(false) && ::unlinkat(at->directory.get(), at->name.c_str(), 0) == 0;
  }));
}

} // namespace sharefs::sys
