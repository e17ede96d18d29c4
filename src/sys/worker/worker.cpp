#include "sys/worker/worker.hpp"

#include "base/try.hpp"
#include "sys/process/become.hpp"
#include "sys/process/child.hpp"
#include "sys/worker/relay.hpp"

#include <algorithm>
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

constexpr const char* k_inherited_variable = "SHAREFS_WORKER"; ///< numbers of the descriptors: CONFIG,NAMESPACE
constexpr int k_first_inherited = 3;
constexpr std::size_t k_longest_config = 16U << 20U;

/// All data of the child, made before the fork.
struct WorkerStart {
  std::vector<std::string> words, environment;
  std::vector<char*> argv, envp;
  Fd program, config, user_namespace;
  Pipe failure; ///< carries the errno if the worker cannot be started
};

/// Makes a file in memory that nobody can change any more.
Fd make_sealed_file(const std::string& text) {
  Fd file(::memfd_create("sharefs.yaml", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  constexpr int k_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (file && (!write_all(file.get(), text) || ::fcntl(file.get(), F_ADD_SEALS, k_seals) != 0))
    file.reset();
  return file;
}

/// Sets up the child's streams, its terminal and the inherited descriptors; all others are closed by exec. The numbers
/// of `streams` are above 2: main() has opened 0, 1 and 2.
bool set_up_descriptors(const WorkerStart& start, const std::array<int, 3>& streams, int terminal) {
  if (terminal >= 0 && ::ioctl(terminal, TIOCSCTTY, 0) != 0)
    return false;
  for (const int place : {0, 1, 2})
    if (::dup2(streams.at(static_cast<std::size_t>(place)), place) < 0)
      return false;
  if (::close_range(k_first_inherited, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
    return false;
  return std::ranges::all_of(std::array{start.config.get(), start.user_namespace.get()},
                             [](int fd) { return fd < 0 || ::fcntl(fd, F_SETFD, 0) == 0; });
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
  const auto give_up = [&start](int error) {
    write_all(start.failure.write.get(),
              {reinterpret_cast<const char*>(&error), sizeof error}); // NOLINT: the reader is this program
    ::_exit(126);
  };
  if (!set_up_descriptors(start, streams, terminal))
    give_up(errno);
  if (const int error = become(request.user); error != 0)
    give_up(error);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM); // ends the worker with root's process; it is set after become(), which clears it
  ::umask(022);
  enter_directory(request);
  ::fexecve(start.program.get(), start.argv.data(), start.envp.data());
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
    start.config = make_sealed_file(request.config);
  if (request.makes_view)
    if (auto made = make_user_namespace(request.user)) // on an error the worker tries to make one itself
      start.user_namespace = std::move(*made);
  start.environment.push_back(
      fmt::format("{}={},{}", k_inherited_variable, start.config.get(), start.user_namespace.get()));
  start.argv = exec_words(start.words);
  start.envp = exec_words(start.environment);
  start.program.reset(
      ::open(request.program.c_str(), O_RDONLY | O_CLOEXEC)); // root opens it: the user may be unable to reach it
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

WorkerInheritance WorkerInheritance::take() {
  WorkerInheritance inherited;
  const char* text = ::getenv(k_inherited_variable);
  if (text == nullptr || ::geteuid() == 0)
    return inherited;
  int config = -1, user_namespace = -1;
  inherited.is_worker = std::sscanf(text, "%d,%d", &config, &user_namespace) == 2;
  ::unsetenv(k_inherited_variable);
  const auto taken = [&](int number) {
    return inherited.is_worker && number >= k_first_inherited && ::fcntl(number, F_SETFD, FD_CLOEXEC) == 0 ? number
                                                                                                           : -1;
  };
  inherited.user_namespace = taken(user_namespace);
  if (const Fd file(taken(config)); file && ::lseek(file.get(), 0, SEEK_SET) == 0)
    read_all(file.get(), inherited.config.emplace(), k_longest_config);
  return inherited;
}

} // namespace sharefs::sys
