#include "sys/layers/layered_command.hpp"

#include "base/parallel.hpp"
#include "base/path.hpp"
#include "base/try.hpp"
#include "sys/fs/walk.hpp"
#include "sys/process/child.hpp"
#include "sys/process/interrupt.hpp"
#include "sys/process/rights.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <fmt/format.h>
#include <functional>
#include <linux/capability.h>
#include <mutex>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>

namespace sharefs::sys {

namespace {

using namespace std::chrono_literals;

/// The step that failed in the child, reported over a pipe that exec closes.
enum class Layering : char { not_ours = 'o', no_namespace = 'n', no_mount = 'm', no_tree = 't', no_command = 'c' };

struct FailedStep {
  Layering step;
  int error_number;
};

bool is_mounting_root() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  return ::geteuid() == 0 && ::syscall(SYS_capget, &header, sets.data()) == 0 &&
         (sets[0].effective & 1U << CAP_SYS_ADMIN) != 0;
}

/// The groups of the command; the first one is its own. `given`: in a namespace that root has made, it has all.
std::vector<gid_t> mapped_groups(bool given) {
  std::vector<gid_t> groups(1, ::getegid());
  if (!given)
    return groups;
  const int count = ::getgroups(0, nullptr);
  std::vector<gid_t> more(static_cast<std::size_t>(std::max(count, 0)));
  more.resize(static_cast<std::size_t>(std::max(::getgroups(count, more.data()), 0)));
  std::ranges::copy_if(more, std::back_inserter(groups), [&](gid_t gid) { return gid != groups.front(); });
  return groups;
}

/// A user namespace, in which the owner of a store has rights over his own files only: whoever replaces the paths that
/// are mounted reaches nothing that is not his. Everybody keeps his own number, so the command is who it was, and
/// nobody can give up a group there: who is kept out of a file by one stays out.
bool enter_user_namespace(int given) {
  if (given >= 0)
    return ::setns(given, CLONE_NEWUSER) == 0 && ::unshare(CLONE_NEWNS) == 0;
  const auto uid = ::geteuid();
  const auto gid = ::getegid();
  return ::unshare(CLONE_NEWNS | CLONE_NEWUSER) == 0 &&
         map_ids("/proc/self/", fmt::format("{0} {0} 1\n", uid), fmt::format("{0} {0} 1\n", gid));
}

/// A thread that was joined is one of this process for a moment yet, and a process that has several enters no user
/// namespace: EINVAL (setns(2), unshare(2)). Nothing tells of its end but the number of links of /proc/self/task, two
/// more than there are threads.
void wait_for_ended_threads() {
  constexpr std::chrono::milliseconds k_pause{1};
  constexpr int k_most_pauses = 10'000;
  constexpr nlink_t k_of_one_thread = 3;
  struct stat tasks{};
  for (int pauses = 0;
       pauses < k_most_pauses && ::stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > k_of_one_thread; ++pauses)
    std::this_thread::sleep_for(k_pause); // NOLINT: nothing wakes us
}

bool enter_namespaces(bool as_root, int given) {
  return (as_root ? ::unshare(CLONE_NEWNS) == 0 : enter_user_namespace(given)) &&
         ::mount(nullptr, "/", nullptr, MS_REC | (as_root ? MS_PRIVATE : MS_SLAVE), nullptr) == 0;
}

/// overlayfs(7) reads its options up to a comma, and lowerdir up to a colon.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == '\\' || c == ',' || c == ':')
      text += '\\';
    text += c;
  }
  return text;
}

/// Shows what lies at `name`, with the mounts in it, at `target` as well.
bool bind(int directory, const std::string& name, const std::string& target) {
  constexpr unsigned k_flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW;
  const Fd tree(static_cast<int>(::syscall(SYS_open_tree, directory, name.c_str(), k_flags)));
  return tree && ::syscall(SYS_move_mount, tree.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

/// A view of the parent in which `name` is a directory: a link there cannot be mounted on.
bool show_parent(const Layers& layers) {
  const Fd parent(::open(layers.parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  if (!parent || ::fstat(parent.get(), &status) != 0 ||
      ::mount("sharefs", layers.parent.c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
              fmt::format("mode={:o},size=1m", status.st_mode & 07777U).c_str()) != 0)
    return false;
  std::vector<std::string> names;
  if (const int error = list_names(Fd(::openat(parent.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), names);
      error != 0) {
    errno = error;
    return false;
  }
  for (const auto& name : names) {
    const auto path = join_path(layers.parent, name);
    if (name == layers.name || ::fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISLNK(status.st_mode)) {
      std::string text(PATH_MAX, '\0');
      const auto length = ::readlinkat(parent.get(), name.c_str(), text.data(), text.size());
      if (length < 0)
        return false;
      text.resize(static_cast<std::size_t>(length));
      if (::symlink(text.c_str(), path.c_str()) != 0)
        return false;
    } else if (S_ISDIR(status.st_mode) && (::mkdir(path.c_str(), S_IRWXU) != 0 || !bind(parent.get(), name, path))) {
      return false;
    }
  }
  return ::mkdir(join_path(layers.parent, layers.name).c_str(), S_IRWXU) == 0;
}

bool mount_layers(const Layers& layers, bool as_root) {
  struct stat lower{}; // the tree has the mode of its upper directory
  if (::stat(layers.lower.c_str(), &lower) != 0 ||
      ::chmod(layers.upper.c_str(), (lower.st_mode & 07777U) | S_IRWXU) != 0)
    return false;
  auto options = fmt::format("lowerdir={},upperdir={},workdir={},index=off,metacopy=off,redirect_dir=nofollow",
                             escaped(layers.lower), escaped(layers.upper), escaped(layers.work));
  if (!as_root) // who reads the upper directory afterwards sees no others
    options += ",userxattr";
  const auto target = join_path(layers.parent, layers.name);
  return ::mount("sharefs", target.c_str(), "overlay", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
}

bool add_mode(int directory, const char* name, const struct stat& status, mode_t wanted) {
  return (status.st_mode & wanted) == wanted || ::fchmodat(directory, name, (status.st_mode & 07777U) | wanted, 0) == 0;
}

using Visit = std::function<int(int tree, const std::string& path, std::vector<std::string>& below)>;

/// A directory can be written by its owner. 0 or errno; `below` gets the directories in it.
int make_writable(int tree, const std::string& path, std::vector<std::string>& below) {
  Fd fd = open_below(tree, path.c_str());
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !add_mode(fd.get(), ".", status, S_IRWXU))
    return errno;
  return for_each_name(std::move(fd), [&](int /*here*/, const dirent& entry) {
    if (entry.d_type == DT_DIR)
      below.push_back(path + "/" + entry.d_name);
    return 0;
  });
}

/// Users and groups that a user namespace of this process has: overlayfs changes files of no others.
struct Mapped {
  std::vector<gid_t> gids;
  uid_t uid = ::geteuid();

  /// 0 or errno: EOVERFLOW, as overlayfs has it, for a directory in which something is of somebody else.
  int check(int tree, const std::string& path, std::vector<std::string>& below) const {
    Fd fd = open_below(tree, path.c_str());
    struct stat status{};
    if (!fd || ::fstat(fd.get(), &status) != 0)
      return errno;
    if (!has(status))
      return EOVERFLOW;
    return for_each_name(std::move(fd), [&](int here, const dirent& entry) {
      struct stat of_name{};
      if (::fstatat(here, entry.d_name, &of_name, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
      if (S_ISDIR(of_name.st_mode))
        below.push_back(path + "/" + entry.d_name);
      return has(of_name) ? 0 : EOVERFLOW;
    });
  }

 private:
  [[nodiscard]] bool has(const struct stat& status) const {
    return status.st_uid == uid && std::ranges::find(gids, status.st_gid) != gids.end();
  }
};

/// All directories of the tree, as many at a time as there are threads: each costs some round trips. 0 or errno.
int for_each_directory(int tree, const Visit& visit) {
  constexpr std::size_t k_threads = 16;
  std::vector<std::string> level{"."};
  std::atomic<int> failed = 0;
  while (!level.empty() && failed == 0) {
    std::vector<std::string> next;
    std::mutex mutex;
    const auto visit_one = [&](std::size_t number) {
      if (failed != 0)
        return;
      std::vector<std::string> below;
      if (const int error = visit(tree, level[number], below); error != 0)
        failed = error;
      const std::lock_guard lock(mutex);
      std::ranges::move(below, std::back_inserter(next));
    };
    try {
      in_parallel(level.size(), k_threads, visit_one);
    } catch (const std::exception&) {
      return ENOMEM;
    }
    level = std::move(next);
  }
  return failed;
}

/// So can the files in one directory, if there is one.
int make_files_writable(int tree, const std::string& path) {
  Fd fd = open_below(tree, path.c_str());
  if (!fd)
    return errno == ENOENT ? 0 : errno;
  return for_each_name(std::move(fd), [](int here, const dirent& entry) {
    struct stat status{};
    if (::fstatat(here, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
      return 0;
    return add_mode(here, entry.d_name, status, S_IWUSR) ? 0 : errno;
  });
}

bool prepare_tree(const Layers& layers) {
  const Fd tree(::open(join_path(layers.parent, layers.name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!tree)
    return false;
  int error = ::geteuid() == 0 ? 0 : for_each_directory(tree.get(), make_writable);
  for (const auto& path : layers.writable)
    if (::geteuid() != 0 && error == 0)
      error = make_files_writable(tree.get(), path);
  if (error != 0) {
    errno = error;
    return false;
  }
  for (const auto& path : layers.removed)
    if (::unlinkat(tree.get(), path.c_str(), 0) != 0 && errno != ENOENT && errno != ENOTDIR)
      return false;
  return true;
}

/// Enters the view of the command.
void layer(const Layers& layers, const std::function<void(Layering)>& give_up) {
  const bool as_root = is_mounting_root();
  if (!as_root) {
    const Fd lower(::open(layers.lower.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const Mapped mapped{mapped_groups(layers.user_namespace >= 0)};
    const auto check = [&](int tree, const std::string& path, auto& below) { return mapped.check(tree, path, below); };
    errno = lower ? for_each_directory(lower.get(), check) : errno;
    if (errno != 0)
      give_up(Layering::not_ours);
    wait_for_ended_threads();
  }
  if (!enter_namespaces(as_root, layers.user_namespace))
    give_up(Layering::no_namespace);
  if (!show_parent(layers) || !mount_layers(layers, as_root))
    give_up(Layering::no_mount);
  if (!prepare_tree(layers))
    give_up(Layering::no_tree);
  // The command may change what its user has protected from himself, because in a user namespace this right
  // reaches no file of anybody else (user_namespaces(7)). Where it cannot be had, directories are writable still.
  if (!as_root)
    keep_capability(CAP_DAC_OVERRIDE);
}

void run(const TerminalCommand& command, const Layers* layers, int failure_pipe) {
  const auto give_up = [failure_pipe](Layering step) {
    const FailedStep failure{step, errno};
    write_all(failure_pipe, {reinterpret_cast<const char*>(&failure), sizeof failure}); // NOLINT: to ourselves
    ::_exit(127);
  };
  if (layers != nullptr)
    layer(*layers, give_up);
  if (command.output_to_stderr)
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  if (::chdir(command.directory.c_str()) != 0 && ::chdir("/") != 0)
    give_up(Layering::no_command);
  std::vector<char*> argv, environment;
  for (const auto& word : command.argv)
    argv.push_back(const_cast<char*>(word.c_str())); // NOLINT: execvpe() does not write
  for (const auto& one : command.environment)
    environment.push_back(const_cast<char*>(one.c_str())); // NOLINT
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  // The command is found in the PATH that it gets: execvpe() looks in ours.
  for (const auto& one : command.environment)
    if (one.starts_with("PATH="))
      ::setenv("PATH", one.c_str() + 5, 1);
  ::execvpe(argv.front(), argv.data(), environment.data());
  give_up(Layering::no_command);
}

Error error_of(const TerminalCommand& command, const Layers& layers, const FailedStep& failure) {
  switch (failure.step) {
  case Layering::no_namespace:
    return {ErrorCode::unsupported,
            std::string("this user cannot have a user namespace here: ") + errno_text(failure.error_number),
            "allow it (`sysctl user.max_user_namespaces kernel.unprivileged_userns_clone`), or run it on another host",
            ""};
  case Layering::no_mount:
    return {ErrorCode::unsupported,
            fmt::format("overlayfs cannot be mounted over {}: {}", layers.lower, errno_text(failure.error_number)),
            fmt::format("{} must lie on a file system of this host that can be its upper layer (ext4, xfs, tmpfs)",
                        layers.upper),
            ""};
  case Layering::not_ours:
  case Layering::no_tree:
    // As the user namespace, or the server, has it.
    if (failure.error_number == EOVERFLOW || failure.error_number == EPERM)
      return {ErrorCode::unsupported,
              layers.lower + " has files of another user, or of a group that cannot be mapped into a user namespace",
              "run it as root, and let the owner of the store be a member of that group", ""};
    return errno_error(failure.error_number,
                       failure.step == Layering::not_ours ? layers.lower : join_path(layers.parent, layers.name));
  case Layering::no_command:
    break;
  }
  return errno_error(failure.error_number, command.argv.front());
}

Result<int> run_to_end(const TerminalCommand& command, const Layers* layers) {
  constexpr auto k_patience = 10s; // after Ctrl-C, for the command to clean up
  Pipe pipe;
  if (!pipe.open())
    return fail(errno_error(errno, "cannot run a command"));
  // The terminal's signals are for the command.
  TRY_ASSIGN(auto child, Child::fork([&] { run(command, layers, pipe.write.get()); }, Child::Group::ours));
  pipe.write.reset();
  auto end = Deadline::max();
  while (!child.reap_until(std::min(end, deadline_in(200ms)))) {
    if (interrupted() && end == Deadline::max())
      end = deadline_in(k_patience);
    if (Clock::now() >= end) {
      child.kill();
      return fail(ErrorCode::interrupted, "interrupted: the command did not end");
    }
  }
  FailedStep failure{};
  if (::read(pipe.read.get(), &failure, sizeof failure) == static_cast<ssize_t>(sizeof failure))
    return fail(error_of(command, layers == nullptr ? Layers{} : *layers, failure));
  return child.exit_code();
}

} // namespace

Result<int> run_in_terminal(const TerminalCommand& command) {
  return run_to_end(command, nullptr);
}

Result<int> run_layered(const TerminalCommand& command, const Layers& layers) {
  return run_to_end(command, &layers);
}

} // namespace sharefs::sys
