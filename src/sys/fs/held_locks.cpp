#include "sys/fs/held_locks.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "sys/fs/files.hpp"
#include "sys/fs/walk.hpp"
#include "sys/process/child.hpp"
#include "sys/process/wire.hpp"

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>

namespace sharefs::sys {

template <WireOf<HeldLocks> H> auto wire_fields(H& h) {
  return std::tie(h.name, h.token, h.uid, h.flock_error, h.posix_error, h.held);
}

namespace {

constexpr std::size_t k_unguessable = 25; // 128 bits

Fd open_directory(int root, const std::string& path) {
  const auto found = walk(root, path, {.follow_last = true});
  if (!found || !found->exists()) {
    errno = found ? ENOENT : found.error().error_number;
    return Fd();
  }
  return Fd(::openat(found->directory.get(), found->name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

int posix_lock(int fd, short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, F_SETLK, &lock) == 0 ? 0 : errno;
}

/// A new file that others may read, and its name is gone with it.
class LockFile {
 public:
  LockFile(int directory, std::string name) : m_directory(directory), m_name(std::move(name)) {}
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  ~LockFile() {
    if (!m_file)
      return;
    m_file.reset(); // an open file would only be renamed, as NFS clients do
    ::unlinkat(m_directory, m_name.c_str(), 0);
  }
  int make(const std::string& content) {
    m_file.reset(::openat(m_directory, m_name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    const bool made =
        m_file && ::fchmod(m_file.get(), 0644) == 0 && write_all(m_file.get(), content) && ::fsync(m_file.get()) == 0;
    return made ? 0 : errno;
  }
  [[nodiscard]] int fd() const { return m_file.get(); }

 private:
  int m_directory;
  std::string m_name;
  Fd m_file;
};

/// In the child. Reports an errno, then HeldLocks twice; SIGUSR1 asks for the next step, and any other signal, also
/// that our parent is gone, for the end.
void hold(const Files& files, const LockRequest& request, HeldLocks held, pid_t parent, int report) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGUSR1, SIGTERM, SIGINT, SIGHUP})
    sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN); // a parent that is killed no longer reads what is reported: the files go all the same
  ::prctl(PR_SET_PDEATHSIG, SIGTERM); // becoming another user has cleared it, so only now
  const auto next = [&signals, parent] {
    int number = 0;
    return ::getppid() == parent && ::sigwait(&signals, &number) == 0 && number == SIGUSR1;
  };
  const auto send = [report](const auto& value) { write_all(report, WireWriter().put(value).framed()); };

  const Fd root = files.open_root();
  const Fd directory = open_directory(root.get(), request.directory);
  if (!directory)
    return send(errno);
  LockFile first(directory.get(), held.name + ".flock"), second(directory.get(), held.name + ".posix");
  for (LockFile* const file : {&first, &second})
    if (const int error = file->make(held.token + "\n"); error != 0)
      return send(error);
  struct stat status{};
  if (::fstat(first.fd(), &status) == 0)
    held.uid = status.st_uid;
  held.flock_error = ::flock(first.fd(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  held.posix_error = posix_lock(second.fd(), F_WRLCK);
  send(0);
  send(held);
  if (!next())
    return;
  ::flock(first.fd(), LOCK_UN);
  posix_lock(second.fd(), F_UNLCK);
  held.held = false;
  send(held);
  next();
}

/// The parent's side: one frame after the other, each in time.
class Holder {
 public:
  Holder(WorkingChild& child, std::chrono::milliseconds deadline) : m_child(child), m_deadline(deadline) {}

  template <class Value> Result<Value> receive() {
    const Deadline end = deadline_in(m_deadline);
    for (;;) {
      const bool more = m_child.drain();
      WireReader reader(m_child.result().substr(m_taken));
      const auto bytes = reader.text();
      if (reader.ok()) {
        m_taken += sizeof(std::uint64_t) + bytes.size();
        return WireReader(bytes).get<Value>();
      }
      if (!more)
        return fail(ErrorCode::failed, "the child process gave no result");
      if (Clock::now() >= end)
        return fail(ErrorCode::timeout,
                    "no answer within " + format_duration(m_deadline / std::chrono::microseconds(1)));
      pollfd news{m_child.fd(), POLLIN, 0};
      ::poll(&news, 1, poll_time(end));
    }
  }
  void next() { ::kill(m_child.process().pid(), SIGUSR1); } // not reaped yet, so the number is its own

 private:
  WorkingChild& m_child;
  std::chrono::milliseconds m_deadline;
  std::size_t m_taken = 0;
};

} // namespace

Result<void> hold_locks(const Files& files, const LockRequest& request,
                        const std::function<void(const HeldLocks&)>& meanwhile) {
  HeldLocks wanted;
  wanted.name = ".sharefs-lock-" + random_letters(k_unguessable);
  wanted.token = random_letters(k_unguessable);
  const pid_t parent = ::getpid();
  auto child = WorkingChild::start(request.as, [&](int fd) { hold(files, request, wanted, parent, fd); });
  if (!child)
    return fail(child.error());
  Holder holder(*child, request.deadline);
  auto talked = [&]() -> Result<void> {
    const auto made = holder.receive<int>();
    if (!made)
      return fail(made.error());
    if (*made != 0)
      return fail(errno_error(*made, request.directory));
    for (int phase = 0; phase < 2; ++phase) {
      const auto held = holder.receive<HeldLocks>();
      if (!held)
        return fail(held.error());
      meanwhile(*held);
      holder.next();
    }
    return {};
  }();
  // It removes its files now: on a server that is slow, in more time than finish() gives.
  if (talked && !child->drain_until(deadline_in(request.deadline)))
    child->process().kill();
  const auto ended = child->finish();
  if (!talked && talked.error().code != ErrorCode::timeout && !ended)
    return fail(ended.error());
  return talked;
}

} // namespace sharefs::sys
