#include "sys/layers/layered_command.hpp"

#include "base/parallel.hpp"
#include "base/path.hpp"
#include "base/try.hpp"
#include "sys/fs/walk.hpp"
#include "sys/mounts/mount_table.hpp"
#include "sys/process/child.hpp"
#include "sys/process/interrupt.hpp"
#include "sys/process/rights.hpp"
#include "sys/process/wire.hpp"
#include "sys/programs/process.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <linux/capability.h>
#include <mutex>
#include <sched.h>
#include <set>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sharefs::sys {

namespace {

using namespace std::chrono_literals;

bool is_mounting_root() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  return ::geteuid() == 0 && ::syscall(SYS_capget, &header, sets.data()) == 0 &&
         (sets[0].effective & 1U << CAP_SYS_ADMIN) != 0;
}

/// Enters a user namespace, in which the owner of a store has rights only over the owner's own files. So nobody gains
/// rights over the files of others by replacing the mounted paths. The ids are mapped to themselves, so the command has
/// the same ids as before. Groups cannot be dropped there, so a file that excludes a group still excludes its members.
bool enter_user_namespace(int given) {
  if (given >= 0)
    return ::setns(given, CLONE_NEWUSER) == 0 && ::unshare(CLONE_NEWNS) == 0;
  const auto uid = ::geteuid();
  const auto gid = ::getegid();
  return ::unshare(CLONE_NEWNS | CLONE_NEWUSER) == 0 &&
         map_ids("/proc/self/", fmt::format("{0} {0} 1\n", uid), fmt::format("{0} {0} 1\n", gid));
}

bool enter_namespaces(bool as_root, int given) {
  return (as_root ? ::unshare(CLONE_NEWNS) == 0 : enter_user_namespace(given)) &&
         ::mount(nullptr, "/", nullptr, MS_REC | (as_root ? MS_PRIVATE : MS_SLAVE), nullptr) == 0;
}

/// Escapes a path for the options of overlayfs, which end at a comma, and lowerdir also at a colon.
std::string escape_option(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == '\\' || c == ',' || c == ':')
      text += '\\';
    text += c;
  }
  return text;
}

/// Binds `name`, with the mounts in it, to `target`.
bool bind(int directory, const std::string& name, const std::string& target) {
  constexpr unsigned k_flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW;
  const Fd tree(static_cast<int>(::syscall(SYS_open_tree, directory, name.c_str(), k_flags)));
  return tree && ::syscall(SYS_move_mount, tree.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

/// Mounts a view of the parent directory in which `name` is a directory, because a link cannot be a mount point.
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
      if (const auto text = read_link(parent.get(), name); !text || ::symlink(text->c_str(), path.c_str()) != 0)
        return false;
    } else if (S_ISDIR(status.st_mode) && (::mkdir(path.c_str(), S_IRWXU) != 0 || !bind(parent.get(), name, path))) {
      return false;
    }
  }
  return ::mkdir(join_path(layers.parent, layers.name).c_str(), S_IRWXU) == 0;
}

bool mount_layers(const Layers& layers, bool as_root) {
  struct stat lower{}; // the mounted tree gets the mode of its upper directory
  if (::stat(layers.lower.c_str(), &lower) != 0 ||
      ::chmod(layers.upper.c_str(), (lower.st_mode & 07777U) | S_IRWXU) != 0)
    return false;
  auto options = fmt::format("lowerdir={},upperdir={},workdir={},index=off,metacopy=off,redirect_dir=nofollow",
                             escape_option(layers.lower), escape_option(layers.upper), escape_option(layers.work));
  if (!as_root) // the user can read only user.* attributes in the upper directory afterwards
    options += ",userxattr";
  const auto target = join_path(layers.parent, layers.name);
  return ::mount("sharefs", target.c_str(), "overlay", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
}

/// Makes the directory at `path` read-only in this namespace.
bool protect(const std::string& path) {
  constexpr unsigned long k_kept = MS_NOSUID | MS_NODEV | MS_NOEXEC; // a user namespace cannot take these away
  struct statvfs status{};
  return ::mount(path.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0 &&
         ::statvfs(path.c_str(), &status) == 0 &&
         ::mount(nullptr, path.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | (status.f_flag & k_kept),
                 nullptr) == 0;
}

/// Adds every path that leads to the directory: a server often has a bind mount of what it exports. False with errno.
bool add_paths_to(const std::string& directory, const MountTable& table, std::set<std::string>& paths) {
  std::error_code error;
  const auto path = std::filesystem::canonical(directory, error).string();
  const auto* owner = error ? nullptr : table.owner_of(path);
  struct stat status{};
  errno = error ? error.value() : ENOENT;
  if (owner == nullptr || ::stat(path.c_str(), &status) != 0)
    return false;
  const auto inside = normalize_path(owner->root + "/" + path.substr(owner->target.size()));
  for (const auto& mount : table.entries()) {
    if (mount.major != owner->major || mount.minor != owner->minor || !is_under(inside, mount.root))
      continue;
    const auto same = normalize_path(mount.target + "/" + inside.substr(mount.root.size()));
    struct stat there{};
    if (::stat(same.c_str(), &there) == 0 && there.st_ino == status.st_ino && there.st_dev == status.st_dev)
      paths.insert(same);
  }
  return true;
}

bool protect_all(const Layers& layers) {
  std::string text;
  const Fd file(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  if (!file || read_all(file.get(), text) != 0)
    return false;
  const auto table = MountTable::parse(text);
  std::set<std::string> paths;
  return table && add_paths_to(layers.lower, *table, paths) &&
         std::ranges::all_of(layers.read_only, [&](const auto& path) { return add_paths_to(path, *table, paths); }) &&
         std::ranges::all_of(paths, protect);
}

bool add_mode(int directory, const char* name, const struct stat& status, mode_t wanted) {
  return (status.st_mode & wanted) == wanted || ::fchmodat(directory, name, (status.st_mode & 07777U) | wanted, 0) == 0;
}

/// True if the directory has a user or group that the user namespace of this process does not map: the kernel then
/// shows the overflow id, and overlayfs cannot change its files.
bool is_unmapped(const struct stat& status) {
  constexpr unsigned k_overflow_id = 65534; // /proc/sys/kernel/overflowuid and overflowgid
  return status.st_uid != ::geteuid() || (status.st_gid == k_overflow_id && ::getegid() != k_overflow_id);
}

/// Gives the owner write permission on a directory. Returns 0 or errno; EOVERFLOW, as in overlayfs, if it
/// is_unmapped(); `below` gets the directories in it.
int make_writable(int tree, const std::string& path, std::vector<std::string>& below) {
  Fd fd = open_below(tree, path.c_str());
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0)
    return errno;
  if (is_unmapped(status))
    return EOVERFLOW;
  if (!add_mode(fd.get(), ".", status, S_IRWXU))
    return errno;
  return for_each_name(std::move(fd), [&](int /*here*/, const dirent& entry) {
    if (entry.d_type == DT_DIR)
      below.push_back(path + "/" + entry.d_name);
    return 0;
  });
}

/// Makes all directories of the tree writable, in parallel, because each costs some round trips to a server. Returns 0
/// or errno.
int make_all_writable(int tree) {
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
      if (const int error = make_writable(tree, level[number], below); error != 0)
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

/// Gives the owner write permission on the files in a directory, if the directory exists. Returns 0 or errno.
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

/// Returns 0 or errno.
int prepare_tree(const Layers& layers, bool as_root) {
  const Fd tree(::open(join_path(layers.parent, layers.name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int error = !tree ? errno : as_root ? 0 : make_all_writable(tree.get());
  for (const auto& path : layers.writable)
    if (!as_root && error == 0)
      error = make_files_writable(tree.get(), path);
  for (const auto& path : layers.removed)
    if (error == 0 && ::unlinkat(tree.get(), path.c_str(), 0) != 0 && errno != ENOENT && errno != ENOTDIR)
      error = errno;
  return error;
}

/// Returns how the user can have a view of the tree: a user namespace maps no other group than the first one.
std::string hint_for_view(const std::string& lower) {
  struct stat status{};
  if (::stat(lower.c_str(), &status) == 0 && status.st_uid == ::geteuid() && status.st_gid != ::getegid() &&
      ::group_member(status.st_gid) != 0)
    return fmt::format("run it after `newgrp $(stat -c %G {})`, which makes the group of the files your first one",
                       shell_quote(lower));
  return "run it as root, and let the owner of the store be a member of that group";
}

/// Enters the view of the command, in the child.
Result<void> enter_layers(const Layers& layers) {
  const bool as_root = is_mounting_root();
  const auto hint = hint_for_view(layers.lower); // a user namespace shows other ids
  if (!enter_namespaces(as_root, layers.user_namespace))
    return fail(
        ErrorCode::unsupported, fmt::format("this user cannot have a user namespace here: {}", errno_text(errno)),
        "allow it (`sysctl user.max_user_namespaces kernel.unprivileged_userns_clone`), or run it on another host");
  if (!show_parent(layers) || !mount_layers(layers, as_root) || !protect_all(layers))
    return fail(ErrorCode::unsupported,
                fmt::format("overlayfs cannot be mounted over {}: {}", layers.lower, errno_text(errno)),
                fmt::format("{} must lie on a file system of this host that can be its upper layer (ext4, xfs, tmpfs)",
                            layers.upper));
  const int error = prepare_tree(layers, as_root);
  if (error == EOVERFLOW || error == EPERM) // EOVERFLOW comes from the user namespace, EPERM may come from the server
    return fail(ErrorCode::unsupported,
                layers.lower + " has files of another user, or of a group that cannot be mapped into a user namespace",
                hint);
  if (error != 0)
    return fail(errno_error(error, join_path(layers.parent, layers.name)));
  // The command may also change files on which its user lacks write permission: in a user namespace this capability
  // does not apply to files of other users (user_namespaces(7)). Without it the directories are still writable.
  if (!as_root)
    keep_capability(CAP_DAC_OVERRIDE);
  return {};
}

void run(const TerminalCommand& command, const Layers* layers, int failure_pipe) {
  const auto give_up = [failure_pipe](const Error& error) {
    write_all(failure_pipe, WireWriter().put(error).bytes());
    ::_exit(127);
  };
  if (const auto entered = layers == nullptr ? Result<void>{} : enter_layers(*layers); !entered)
    give_up(entered.error());
  if (command.output_to_stderr)
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  if (::chdir(command.directory.c_str()) != 0 && ::chdir("/") != 0)
    give_up(errno_error(errno, command.argv.front()));
  give_up(exec_process(command.argv, command.environment));
}

} // namespace

Result<int> run_in_terminal(const TerminalCommand& command, const Layers* layers) {
  constexpr auto k_cleanup_time = 10s; // for the command, after Ctrl-C
  Pipe pipe;
  if (!pipe.open())
    return fail(errno_error(errno, "cannot run a command"));
  // The command stays in our process group, so that it gets the terminal's signals.
  TRY_ASSIGN(auto child, Child::fork([&] { run(command, layers, pipe.write.get()); }, Child::Group::ours));
  pipe.write.reset();
  auto end = Deadline::max();
  while (!child.reap_until(std::min(end, deadline_in(200ms)))) {
    if (interrupted() && end == Deadline::max())
      end = deadline_in(k_cleanup_time);
    if (Clock::now() >= end) {
      child.kill();
      return fail(ErrorCode::interrupted, "interrupted: the command did not end");
    }
  }
  std::string failure; // nothing, if the command was executed
  read_all(pipe.read.get(), failure);
  return failure.empty() ? Result<int>(child.exit_code()) : fail(WireReader(failure).get<Error>());
}

} // namespace sharefs::sys
