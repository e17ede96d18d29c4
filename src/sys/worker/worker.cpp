#include "sys/worker/worker.hpp"

#include "base/try.hpp"
#include "sys/process/become.hpp"
#include "sys/process/child.hpp"
#include "sys/process/exec_words.hpp"
#include "sys/worker/relay.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sharefs::sys {
namespace {

constexpr const char* k_gifts_variable = "SHAREFS_WORKER"; ///< numbers of the descriptors: CONFIG,NAMESPACE
constexpr int k_first_gift = 3;
constexpr std::size_t k_longest_config = 16U << 20U;

/// All that the child needs, made before the fork.
struct WorkerStart {
  std::vector<std::string> words, environment;
  std::vector<char*> argv, envp;
  Fd program, config, user_namespace;
  Pipe failure; ///< errno of what kept it from starting
};

/// A file in memory that nobody can change any more.
Fd sealed(const std::string& text) {
  Fd file(::memfd_create("sharefs.yaml", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  constexpr int k_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (file && (!write_all(file.get(), text) || ::fcntl(file.get(), F_ADD_SEALS, k_seals) != 0))
    file.reset();
  return file;
}

/// `fd` at number `place`, open across exec. What lies at `place` was copied away before.
bool give(int fd, int place) {
  return ::dup2(fd, place) == place; // dup2 clears FD_CLOEXEC
}

/// In the child: its streams, its terminal, and what it was given; nothing else is open once the program runs.
bool arrange(const WorkerStart& start, const std::array<int, 3>& streams, int terminal, int& failure, int& program) {
  std::array<int, 7> open{streams[0],
                          streams[1],
                          streams[2],
                          start.config.get(),
                          start.user_namespace.get(),
                          start.failure.write.get(),
                          start.program.get()};
  if (terminal >= 0 && ::ioctl(terminal, TIOCSCTTY, 0) != 0)
    return false;
  for (int& fd : open) // out of the way
    if (fd >= 0) {
      fd = ::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(open.size()));
      if (fd < 0)
        return false;
    }
  for (int place = 0; place < k_first_gift + 2; ++place)
    if (const int fd = open.at(static_cast<std::size_t>(place)); fd < 0)
      ::close(place);
    else if (!give(fd, place))
      return false;
  failure = open[5];
  program = open[6];
  return ::close_range(k_first_gift + 2, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
}

void enter_directory(const WorkerRequest& request) {
  for (const auto* directory : {&request.directory, &request.user.home})
    if (directory->starts_with('/') && ::chdir(directory->c_str()) == 0)
      return;
  if (::chdir("/") != 0)
    ::_exit(126);
}

[[noreturn]] void execute(WorkerStart& start, const WorkerRequest& request, const std::array<int, 3>& streams,
                          int terminal) {
  int failure = start.failure.write.get(), program = -1;
  const auto give_up = [&failure](int error) {
    write_all(failure, {reinterpret_cast<const char*>(&error), sizeof error}); // NOLINT: to ourselves
    ::_exit(126);
  };
  if (!arrange(start, streams, terminal, failure, program))
    give_up(errno);
  if (const int error = become(request.user); error != 0)
    give_up(error);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM); // when root's process is gone; a change of ids would have cleared it
  ::umask(022);
  enter_directory(request);
  ::fexecve(program, start.argv.data(), start.envp.data());
  give_up(errno);
  ::_exit(126);
}

Result<WorkerStart> prepare(const WorkerRequest& request) {
  WorkerStart start;
  start.words = request.words;
  start.words.insert(start.words.begin(), "sharefs");
  start.environment = environment_of(request.user);
  for (const auto& entry : request.environment) {
    const auto name = entry.substr(0, entry.find('=') + 1);
    std::erase_if(start.environment, [&](const std::string& before) { return before.starts_with(name); });
    start.environment.push_back(entry);
  }
  if (!request.config.empty())
    start.config = sealed(request.config);
  if (request.makes_view)
    if (auto made = make_user_namespace(request.user)) // without, the worker tries for itself
      start.user_namespace = std::move(*made);
  start.environment.push_back(fmt::format("{}={},{}", k_gifts_variable, start.config ? k_first_gift : -1,
                                          start.user_namespace ? k_first_gift + 1 : -1));
  start.argv = exec_words(start.words);
  start.envp = exec_words(start.environment);
  start.program.reset(::open(request.program.c_str(), O_RDONLY | O_CLOEXEC)); // it may lie where only root may go
  if (!start.program || !start.failure.open())
    return fail(errno_error(errno, "cannot start a worker"));
  return start;
}

} // namespace

Result<int> run_worker(const WorkerRequest& request) {
  if (::geteuid() != 0)
    return fail(ErrorCode::permission, "cannot work as `" + request.user.name + "`", "run sharefs as root");
  TRY_ASSIGN(auto start, prepare(request));
  TRY_ASSIGN(auto relay, Relay::open(request.user.uid));
  TRY_ASSIGN(auto worker,
             Child::fork([&] { execute(start, request, relay.ends(), relay.terminal()); }, Child::Group::own_session));
  start.failure.write.reset();
  relay.copy_until_end(worker);
  int error = 0;
  if (::read(start.failure.read.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error))
    return fail(errno_error(error, "cannot work as `" + request.user.name + "`"));
  if (!worker.reap_until(deadline_in(k_reap_grace)))
    return fail(ErrorCode::interrupted, "the worker did not end: it hangs in the kernel");
  return worker.exit_code();
}

WorkerGifts WorkerGifts::take() {
  WorkerGifts gifts;
  const char* text = ::getenv(k_gifts_variable);
  if (text == nullptr || ::geteuid() == 0)
    return gifts;
  int config = -1, user_namespace = -1;
  gifts.is_worker = std::sscanf(text, "%d,%d", &config, &user_namespace) == 2;
  ::unsetenv(k_gifts_variable);
  const auto taken = [&](int number) {
    return gifts.is_worker && number >= k_first_gift && ::fcntl(number, F_SETFD, FD_CLOEXEC) == 0 ? number : -1;
  };
  gifts.user_namespace = taken(user_namespace);
  if (const Fd file(taken(config)); file && ::lseek(file.get(), 0, SEEK_SET) == 0)
    read_all(file.get(), gifts.config.emplace(), k_longest_config);
  return gifts;
}

} // namespace sharefs::sys
