#include "sys/programs/process.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/walk.hpp"
#include "sys/process/become.hpp"
#include "sys/process/child.hpp"
#include "sys/process/interrupt.hpp"
#include "sys/process/wire.hpp"
#include "sys/programs/isolation.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>

namespace sharefs::sys {
namespace {

/// The time for data that is still in the pipes of a child that has ended, or that its own children still write.
constexpr std::chrono::milliseconds k_drain_grace{100};
constexpr std::chrono::milliseconds k_interrupt_poll{
    200};                                        ///< a signal that arrives just before poll(2) does not end it
constexpr std::size_t k_longest_failure = 65536; ///< bytes of the child's report that it could not start
/// Variables by which the caller could make a program of the system load code from any directory.
constexpr std::string_view k_code_variables[] = {"LD_",  "PYTHON",      "BASH_ENV=", "BASH_FUNC_",
                                                 "ENV=", "GCONV_PATH=", "PERL5",     "RSYNC_"};

/// Returns this process's environment, or a new one for another user, with the changes of `command`, as NAME=value.
std::vector<std::string> environment_of(const Command& command) {
  auto changes = command.environment;
  std::vector<std::string> before;
  if (command.as && command.as->uid != ::geteuid())
    before = environment_of(*command.as);
  else
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
      before.emplace_back(*entry);
  changes.try_emplace("PATH", k_system_path);
  const bool is_of_system = command.argv[0].find('/') == std::string::npos;
  const auto brings_code = [&](const std::string& entry) {
    return is_of_system && std::ranges::any_of(k_code_variables, [&](auto start) { return entry.starts_with(start); });
  };
  std::erase_if(before, [&](const std::string& entry) {
    return changes.contains(entry.substr(0, entry.find('='))) || brings_code(entry);
  });
  for (const auto& [name, value] : changes)
    before.push_back(name + "=" + value);
  return before;
}

/// Returns the absolute paths to try, in order. Relative and empty parts of PATH are left out: the working directory
/// may belong to somebody else, or lie on a dead mount.
std::vector<std::string> find_candidates(const Command& command) {
  const std::string& name = command.argv[0];
  if (name.empty() || name.find('/') != std::string::npos)
    return {name};
  const auto path = command.environment.find("PATH");
  const bool given = path != command.environment.end() && !path->second.empty();
  std::vector<std::string> result;
  for (const std::string& directory : split(given ? path->second : k_system_path, ':'))
    if (directory.starts_with('/'))
      result.push_back(join_path(directory, name));
  return result;
}

/// Returns a file in memory with the input, positioned at its beginning. Unlike a pipe it needs no writer that could
/// block or get SIGPIPE, and for an empty input it replaces /dev/null.
Fd standard_input(const std::string& input) {
  Fd file(::memfd_create("stdin", MFD_CLOEXEC));
  if (file && (!write_all(file.get(), input) || ::lseek(file.get(), 0, SEEK_SET) != 0))
    file.reset();
  return file;
}

/// All data that the child needs to start the program, made before the fork. After the fork the child only makes system
/// calls, and builds an Error if one fails (the comment at WorkingChild::start explains why it may allocate).
struct Start {
  explicit Start(const Command& command)
      : name("`" + command.argv[0] + "`"), words(command.argv), environment(environment_of(command)),
        files(find_candidates(command)), argv(exec_words(words)), envp(exec_words(environment)) {}
  pid_t parent = ::getpid();
  std::string name; ///< the program's name in messages
  std::vector<std::string> words, environment, files;
  std::vector<char*> argv, envp;
  Fd input;
  int file = -1; ///< Command::output_file
  Pipe out, err, failure;
};

/// Duplicates the streams to 0, 1 and 2, and the output file to 3. The sources may have these numbers themselves, so
/// they are moved first.
bool connect_streams(Start& start) {
  constexpr int k_free = 4;
  std::array<int, 5> fds{start.input.get(), start.out.write.get(), start.err.write.get(), start.failure.write.get(),
                         start.file};
  for (int& fd : fds)
    if (fd >= 0 && fd < k_free)
      fd = ::fcntl(fd, F_DUPFD_CLOEXEC, k_free);
  if (fds[3] != start.failure.write.get())
    start.failure.write.reset(fds[3]);
  // The program must not inherit descriptors that we have inherited. Kernels before 5.11 do not support this flag; our
  // own descriptors have O_CLOEXEC anyway.
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  return fds[3] >= 0 && ::dup2(fds[0], 0) == 0 && ::dup2(fds[1], 1) == 1 && ::dup2(fds[2], 2) == 2 &&
         (start.file < 0 || ::dup2(fds[4], 3) == 3);
}

[[noreturn]] void refuse(const Start& start, const Error& error) {
  write_all(start.failure.write.get(), WireWriter().put(error).bytes());
  ::_exit(127);
}

/// Opens Command::tree as k_handed_on. This is done in the child, because the path may lie on a dead mount.
Result<void> hand_on_tree(const std::string& path) {
  TRY_ASSIGN(auto walked, walk_from("/", path, {.links = Links::trusted, .follow_last = true}));
  if (!walked.is_directory())
    return fail(ErrorCode::conflict, path + ": there is no such directory any more");
  // The owner of a directory in the tree could replace it by a link at any moment, and the program opens files by name.
  Fd tree(static_cast<int>(::syscall(SYS_open_tree, walked.fd.get(), "",
                                     AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSYMFOLLOW;
  if (!tree ||
      ::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) != 0)
    tree = std::move(walked.fd); // an older kernel, or a user who may not mount
  constexpr int k_handed = 3;
  const Fd above(::fcntl(tree.get(), F_DUPFD_CLOEXEC, k_handed + 1)); // dup2(3, 3) would leave it closed on execve(2)
  return ::dup2(above.get(), k_handed) == k_handed ? Result<void>() : fail(errno_error(errno, path));
}

/// Executes the program, in the child. Tries each candidate as execvp(3) does, but never runs a shell for a file
/// without `#!`.
[[noreturn]] void execute(Start& start, const Command& command) {
  const std::string& name = start.name;
  if (!connect_streams(start))
    refuse(start, errno_error(errno, "cannot give " + name + " its standard streams"));
  const bool for_another = command.as && command.as->uid != ::geteuid();
  if (command.as)
    if (const int error = become(*command.as); error != 0)
      refuse(start, errno_error(error, "cannot run " + name + " as `" + command.as->name + "`", "run sharefs as root"));
  if (command.ends_with_us)
    if (const auto ends = end_with(start.parent); !ends)
      refuse(start, ends.error());
  if (command.isolation)
    if (const auto isolated = isolate(*command.isolation); !isolated)
      refuse(start, isolated.error());
  // An inherited working directory would give another user a directory that only we may enter.
  const auto directory = command.directory.empty() && for_another ? std::string("/") : command.directory;
  if (!directory.empty() && ::chdir(directory.c_str()) != 0)
    refuse(start, errno_error(errno, "cannot run " + name + " in " + directory));
  if (!command.tree.empty())
    if (const auto handed = hand_on_tree(command.tree); !handed)
      refuse(start, handed.error());
  if (command.program)
    refuse(start, exec_checked(*command.program, start.argv, start.envp));
  int error = ENOENT;
  for (const std::string& file : start.files) {
    ::execve(file.c_str(), start.argv.data(), start.envp.data());
    if (errno == ENOENT || errno == ENOTDIR)
      continue;
    error = errno;
    if (errno != EACCES)
      break;
  }
  if (error == ENOENT && command.argv[0].find('/') == std::string::npos)
    refuse(start, {ErrorCode::not_found, name + " is not installed", {}, {}});
  refuse(start, errno_error(error, "cannot run " + name));
}

/// Starts the child, and closes our copies of its ends of the streams.
Result<Child> start_child(Start& start, const Command& command) {
  start.input =
      command.input_from < 0 ? standard_input(command.input) : Fd(::fcntl(command.input_from, F_DUPFD_CLOEXEC, 3));
  start.file = command.output_file;
  if (!start.input || !start.out.open() || !start.err.open() || !start.failure.open())
    return fail(errno_error(errno, "cannot run " + start.name));
  auto child =
      Child::fork([&] { execute(start, command); }, command.as ? Child::Group::own_session : Child::Group::own);
  for (Fd* fd : {&start.input, &start.out.write, &start.err.write, &start.failure.write})
    fd->reset();
  return child;
}

} // namespace

Result<Completed> run_process(const Command& command) {
  const auto begin = Clock::now();
  const Deadline deadline = deadline_in(command.deadline);
  if (command.argv.empty())
    return fail(ErrorCode::failed, "no program to run");
  Start start(command);
  TRY_ASSIGN(auto child, start_child(start, command));

  Completed result;
  PipeReader out(std::move(start.out.read), command.output_limit);
  PipeReader err(std::move(start.err.read), command.output_limit);
  PipeReader failure(std::move(start.failure.read), k_longest_failure);
  // `end` is the pidfd, or -1 once the child is reaped. The function must not reap the child itself: if the child ended
  // between the caller's check and this call, poll(2) would have nothing to wait for and sleep until the deadline.
  const auto wait_for_more = [&](int end, Deadline until) {
    std::array<pollfd, 4> fds{
        {{end, POLLIN, 0}, {out.fd(), POLLIN, 0}, {err.fd(), POLLIN, 0}, {failure.fd(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), poll_time(std::min(until, child.next_reap())));
  };
  /// False once no process has the streams open any more.
  const auto drain_all = [&] {
    failure.drain();
    const bool more_out = out.drain(), more_err = err.drain();
    return more_out || more_err;
  };

  while (!child.reap()) {
    if (Clock::now() >= deadline) {
      result.timed_out = true;
      child.kill_and_reap();
      break;
    }
    if (command.ends_with_us && interrupted()) {
      child.kill_and_reap();
      return fail(ErrorCode::interrupted, "`" + command.argv[0] + "` was ended");
    }
    wait_for_more(child.pidfd(), command.ends_with_us ? std::min(deadline, deadline_in(k_interrupt_poll)) : deadline);
    drain_all();
  }
  // A daemon that the program has started may keep the streams open for ever, so they are read only for a short time.
  const Deadline last = result.timed_out ? Clock::now() : deadline_in(k_drain_grace);
  while (drain_all() && Clock::now() < last)
    wait_for_more(-1, last);
  if (WireReader reader(failure.bytes()); !reader.at_end())
    return fail(reader.get<Error>());
  result.out = out.bytes();
  result.err = err.bytes();
  result.exit_code = child.exit_code();
  result.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  return result;
}

struct StreamedProcess::Streams {
  Child child;
  Fd out;
  PipeReader err, failure;
};

StreamedProcess::StreamedProcess(std::unique_ptr<Streams> streams) : m_streams(std::move(streams)) {}
StreamedProcess::StreamedProcess(StreamedProcess&&) noexcept = default;

Result<StreamedProcess> StreamedProcess::start(const Command& command) {
  if (command.argv.empty())
    return fail(ErrorCode::failed, "no program to run");
  Start start(command);
  TRY_ASSIGN(auto child, start_child(start, command));
  return StreamedProcess(std::make_unique<Streams>(
      Streams{std::move(child), std::move(start.out.read), PipeReader(std::move(start.err.read), k_longest_failure),
              PipeReader(std::move(start.failure.read), k_longest_failure)}));
}

StreamedProcess::~StreamedProcess() {
  if (m_streams && !m_streams->child.reap())
    m_streams->child.kill_and_reap();
}

Fd& StreamedProcess::out() {
  return m_streams->out;
}

std::string StreamedProcess::error_text() {
  m_streams->failure.drain();
  if (WireReader reader(m_streams->failure.bytes()); !reader.at_end())
    return reader.get<Error>().message;
  m_streams->err.drain();
  constexpr std::string_view k_error = "error: "; // a hint may follow it
  auto lines = split_lines(trim(m_streams->err.bytes()));
  const auto error =
      std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) { return line.starts_with(k_error); });
  if (error != lines.rend())
    return error->substr(k_error.size());
  return lines.empty() ? "" : std::move(lines.back());
}

Error exec_process(const Argv& argv, const std::vector<std::string>& environment) {
  if (argv.empty())
    return {ErrorCode::failed, "no program to run", {}, {}};
  std::vector<std::string> words = argv;
  std::vector<std::string> variables = environment;
  std::vector<char*> envp = exec_words(variables);
  // execvp searches the PATH of the new environment, as env(1) does.
  char** const before = environ;
  environ = envp.data();
  hand_on_child_signal();
  ::execvp(words[0].c_str(), exec_words(words).data());
  const int error = errno;
  environ = before;
  if (const bool assigns = assigns_variable(argv[0]);
      error == ENOENT && (assigns || argv[0].find('/') == std::string::npos))
    return {
        ErrorCode::not_found, "`" + argv[0] + "`: command not found", assigns ? hint_for_assignment(argv[0]) : "", {}};
  Error result = errno_error(error, "cannot run `" + argv[0] + "`");
  if (result.code != ErrorCode::not_found)
    result.code = ErrorCode::permission; // the program was found but is not executable: exit code 126
  return result;
}

} // namespace sharefs::sys
