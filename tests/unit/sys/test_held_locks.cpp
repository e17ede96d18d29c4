#include "sys/fs/held_locks.hpp"

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/fs/files.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sharefs;

namespace {

/// True if somebody else holds it.
bool is_locked(const std::string& path, bool posix) {
  const sys::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(file);
  if (!posix)
    return ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct flock lock{};
  lock.l_type = F_RDLCK;
  return ::fcntl(file.get(), F_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES);
}

} // namespace

TEST_CASE("locks are held, let go, and their files are gone") {
  const test::TemporaryDirectory directory;
  const sys::Files files("/");
  std::vector<bool> seen;
  const auto done = sys::hold_locks(files, {directory.path()}, [&](const sys::HeldLocks& locks) {
    const auto path = directory.path() + "/" + locks.name;
    CHECK(locks.flock_error == 0);
    CHECK(locks.posix_error == 0);
    CHECK(locks.uid == ::geteuid());
    for (const bool posix : {false, true})
      CHECK(is_locked(path + (posix ? ".posix" : ".flock"), posix) == locks.held);
    std::string token;
    std::getline(std::ifstream(path + ".flock") >> std::ws, token);
    CHECK(token == locks.token);
    seen.push_back(locks.held);
  });
  CHECK(done);
  CHECK(seen == std::vector<bool>{true, false});
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("the files are gone after SIGKILL, also while they are being made") {
  const test::TemporaryDirectory directory;
  for (int round = 0; round < 40; ++round) {
    const sys::Fd names(::inotify_init1(IN_CLOEXEC));
    REQUIRE(::inotify_add_watch(names.get(), directory.path().c_str(), IN_CREATE | IN_DELETE) >= 0);
    const auto something_happens = [&names] {
      pollfd news{names.get(), POLLIN, 0};
      std::array<char, 4096> events;
      return ::poll(&news, 1, 10'000) == 1 && ::read(names.get(), events.data(), events.size()) > 0;
    };
    const pid_t killed = ::fork();
    REQUIRE(killed >= 0);
    if (killed == 0) {
      (void)sys::hold_locks(sys::Files("/"), {directory.path()}, [](const sys::HeldLocks&) { ::pause(); });
      ::_exit(0);
    }
    CHECK(something_happens());
    REQUIRE(::kill(killed, SIGKILL) == 0);
    REQUIRE(::waitpid(killed, nullptr, 0) == killed);
    while (!std::filesystem::is_empty(directory.path()))
      REQUIRE(something_happens());
  }
}

TEST_CASE("no locks where nothing can be made") {
  const test::TemporaryDirectory directory;
  const auto done =
      sys::hold_locks(sys::Files("/"), {directory.path() + "/missing"}, [](const sys::HeldLocks&) { FAIL(); });
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::not_found);
}
