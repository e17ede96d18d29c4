#include "sys/fs/lock_probe.hpp"

#include "base/text.hpp"
#include "sys/fs/exclusive.hpp"
#include "sys/process/call.hpp"
#include "sys/process/fd.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace sharefs::sys {

Result<bool> locks_exclude(const std::string& directory) {
  std::string path = directory + "/.sharefs-lock-XXXXXX";
  const Fd first(::mkostemp(path.data(), O_CLOEXEC));
  if (first.get() < 0)
    return fail(errno_error(errno, directory));
  const Fd second(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  const int opened = errno;
  ::unlink(path.c_str());
  if (second.get() < 0)
    return fail(errno_error(opened, path));
  if (::flock(first.get(), LOCK_EX | LOCK_NB) != 0)
    return false; // ENOLCK, EOPNOTSUPP: there are no locks here
  return ::flock(second.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

namespace {

Result<LockAnswer> hold_lock(const LockTrial& trial) {
  const Fd file = create_file(AT_FDCWD, trial.path, 0600, O_RDWR);
  if (!file)
    return fail(errno_error(errno, trial.path));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::unlink(trial.path.c_str());
    return fail(errno_error(error, trial.path + ": flock"));
  }
  std::this_thread::sleep_for(trial.hold);
  ::unlink(trial.path.c_str());
  return LockAnswer::held;
}

Result<LockAnswer> test_lock(const LockTrial& trial) {
  std::this_thread::sleep_for(trial.after); // opening the file too early would cache that it does not exist
  const Fd file(::open(trial.path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file)
    return errno == ENOENT ? Result<LockAnswer>(LockAnswer::missing) : fail(errno_error(errno, trial.path));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
    return LockAnswer::taken;
  return errno == EWOULDBLOCK ? Result<LockAnswer>(LockAnswer::refused) : fail(errno_error(errno, trial.path));
}

} // namespace

const char* to_string(LockAnswer answer) {
  constexpr std::array k_names{"held", "refused", "taken", "missing"};
  return name_in(k_names, answer);
}

Result<LockAnswer> try_lock(const LockTrial& trial, const std::optional<User>& as) {
  constexpr std::chrono::seconds k_grace{5};
  return call(as, trial.hold + trial.after + k_grace,
              [&] { return trial.hold.count() > 0 ? hold_lock(trial) : test_lock(trial); });
}

} // namespace sharefs::sys
