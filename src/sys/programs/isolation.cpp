#include "sys/programs/isolation.hpp"

#include "base/path.hpp"
#include "base/try.hpp"
#include "sys/process/become.hpp"
#include "sys/process/child.hpp"
#include "sys/process/rights.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/sockios.h>
#include <sched.h>
#include <set>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sharefs::sys {
namespace {

constexpr int k_namespaces = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC;
constexpr rlim_t k_most_memory = rlim_t{2} << 30U;
constexpr rlim_t k_largest_file = rlim_t{256} << 20U;

Result<void> failure(const std::string& what) {
  return fail(ErrorCode::unsupported, errno_error(errno, what).message);
}

bool write_new(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  return fd && write_all(fd.get(), text);
}

/// Enters new namespaces. True if root's capability made them; any other user needs a user namespace, in which the
/// program runs as nobody.
Result<bool> enter_namespaces() {
  if (::geteuid() == 0 && ::unshare(k_namespaces) == 0)
    return true;
  const auto uid = ::geteuid();
  const auto gid = ::getegid();
  if (::unshare(k_namespaces | CLONE_NEWUSER) != 0 ||
      !map_ids("/proc/self/", fmt::format("{} {} 1\n", k_nobody, uid), fmt::format("{} {} 1\n", k_nobody, gid)))
    return fail(failure("no namespaces of its own can be made here").error());
  return false;
}

/// Makes all mounts private, so that mounts made here do not reach the host, and sets them read-only, nosuid and nodev.
bool protect_mounts() {
  const std::array<std::uint64_t, 4> attributes{MS_RDONLY | MS_NOSUID | MS_NODEV, 0, 0, 0}; // same bits as MOUNT_ATTR_*
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return false;
  return ::syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, attributes.data(), sizeof attributes) == 0 ||
         errno == ENOSYS;
}

bool mount_empty(const std::string& directory, const char* mode) {
  return ::mount("sharefs", directory.c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                 fmt::format("mode={},size={}", mode, k_largest_file).c_str()) == 0;
}

/// Makes an entry of a directory of the host visible at `path`. A special file is replaced by a socket, which a program
/// skips as well when it reads the directory.
bool show(int directory, const std::string& name, const std::string& path) {
  struct stat status{};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT;
  if (S_ISLNK(status.st_mode)) {
    const auto target = read_link(directory, name);
    return target && ::symlink(target->c_str(), path.c_str()) == 0;
  }
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return ::mknod(path.c_str(), S_IFSOCK | S_IRUSR, 0) == 0;
  const bool made = S_ISDIR(status.st_mode) ? ::mkdir(path.c_str(), S_IRWXU) == 0 : write_new(path, "");
  return made && ::mount(fmt::format("/proc/self/fd/{}/{}", directory, name).c_str(), path.c_str(), nullptr,
                         MS_BIND | MS_REC, nullptr) == 0;
}

/// Covers the directory by a writable one with the same entries except `names`, so that those can be made in it.
bool copy_directory(const std::string& path, const std::set<std::string>& names) {
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || !mount_empty(path, "755"))
    return false;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(fmt::format("/proc/self/fd/{}", directory.get()), error), end;
       !error && entry != end; entry.increment(error))
    if (const auto name = entry->path().filename().string(); !names.contains(name))
      if (!show(directory.get(), name, join_path(path, name)))
        return false;
  errno = error.value();
  return !error;
}

/// Makes the files of `isolation`, and before them the directories that contain them, from the root downwards.
bool show_files(const Isolation& isolation) {
  std::map<std::string, std::set<std::string>> directories;
  for (const auto& [path, text] : isolation.files)
    directories[parent_path(path)].insert(base_name(path));
  const auto is_ours = [&](const std::string& path) {
    return std::ranges::any_of(isolation.empty, [&](const std::string& empty) { return is_under(path, empty); });
  };
  for (const auto& [directory, names] : directories) {
    const bool missing = ::access(directory.c_str(), F_OK) != 0;
    if (missing && ::mkdir(directory.c_str(), 0755) != 0)
      return false;
    if (!missing && !is_ours(directory) && !copy_directory(directory, names))
      return false;
  }
  return std::ranges::all_of(isolation.files, [](const auto& file) { return write_new(file.first, file.second); });
}

/// Makes network interfaces. They are bridges, the only kind that every distribution's kernel makes by a single call.
bool make_interfaces(const std::vector<std::string>& names) {
  const Fd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return names.empty() || (any && std::ranges::all_of(names, [&](const std::string& name) {
                             return ::ioctl(any.get(), SIOCBRADDBR, name.c_str()) == 0 || errno == EEXIST ||
                                    errno == EINVAL; // EINVAL: the kernel does not allow this name
                           }));
}

/// Makes root's program nobody, but lets it search every directory and read every file, as root could.
bool become_reader() {
  constexpr unsigned k_right = CAP_DAC_READ_SEARCH;
  if (const int error = become({"nobody", k_nobody, k_nobody, {}, "/"}, 1U << k_right); error != 0) {
    errno = error;
    return false;
  }
  return keep_capability(k_right);
}

/// Waits for the program, outside of its PID namespace, prints its result file, and exits.
[[noreturn]] void wait_for(pid_t program, const Isolation& isolation) {
  int status = 0;
  while (::waitpid(program, &status, 0) < 0 && errno == EINTR) {
  }
  const int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (isolation.result.empty() || !WIFEXITED(status))
    ::_exit(exit_code);
  const Fd file(::open(isolation.result.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode))
    ::_exit(k_no_result);
  std::string text;
  read_all(file.get(), text, k_largest_file);
  write_all(STDOUT_FILENO, text);
  ::_exit(exit_code);
}

} // namespace

Result<void> isolate(const Isolation& isolation) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) // this process ends with sharefs, and the program ends with this process
    return failure("it cannot be ended with sharefs");
  TRY_ASSIGN(const auto as_root, enter_namespaces());
  if (!protect_mounts())
    return failure("the mounts cannot be made private");
  for (const auto& directory : isolation.empty)
    if (!mount_empty(directory, "777") && errno != ENOENT)
      return failure(fmt::format("{} cannot be made empty", directory));
  if (!show_files(isolation))
    return failure("the files cannot be put into place");
  if (!make_interfaces(isolation.interfaces))
    return failure("network interfaces cannot be made");
  const pid_t program = ::fork();
  if (program < 0)
    return failure("no process can be started");
  if (program > 0)
    wait_for(program, isolation);
  if (!isolation.result.empty())
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  if (lower_limit(RLIMIT_AS, k_most_memory) != 0 || lower_limit(RLIMIT_FSIZE, k_largest_file) != 0 ||
      lower_limit(RLIMIT_CORE, 0) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      (as_root && !become_reader()) || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return failure("its rights cannot be given up");
  return {};
}

} // namespace sharefs::sys
