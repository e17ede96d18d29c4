#include "sys/mounts/mounting.hpp"

#include "base/text.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <poll.h>
#include <sys/mount.h>

namespace sharefs::sys {
namespace {

constexpr int k_max_table_reads = 8;
/// How often the mount table is looked at while umount2(2) is under way.
constexpr std::chrono::milliseconds k_look_interval{25};
constexpr std::chrono::milliseconds k_resolve_deadline{2000};
/// After a lazy or forced unmount has left the table, the child is waited for no longer than this.
constexpr std::chrono::milliseconds k_detached_grace{200};

struct MountInfo {
  std::string text;
  bool torn = false; ///< mounts came or went while it was read, so that entries may be missing
};

Result<MountInfo> read_mountinfo() {
  const Fd fd(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  MountInfo info;
  std::array<char, 65536> buffer{};
  ssize_t count = -1;
  while (fd && (count = ::read(fd.get(), buffer.data(), buffer.size())) != 0) {
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      break;
    info.text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (count != 0)
    return fail(errno_error(errno, "/proc/self/mountinfo"));
  // proc_pid_mountinfo(5): poll tells of a change since the file was opened. Dearer would be to read it a second time.
  pollfd change{fd.get(), POLLPRI, 0};
  info.torn = ::poll(&change, 1, 0) > 0;
  return info;
}

struct FlagWord {
  std::string_view word;
  unsigned long set, clear;
};
constexpr std::array<FlagWord, 20> k_flag_words{{
    {"defaults", 0, 0},
    {"ro", MS_RDONLY, 0},
    {"rw", 0, MS_RDONLY},
    {"nosuid", MS_NOSUID, 0},
    {"suid", 0, MS_NOSUID},
    {"nodev", MS_NODEV, 0},
    {"dev", 0, MS_NODEV},
    {"noexec", MS_NOEXEC, 0},
    {"exec", 0, MS_NOEXEC},
    {"sync", MS_SYNCHRONOUS, 0},
    {"async", 0, MS_SYNCHRONOUS},
    {"remount", MS_REMOUNT, 0},
    {"bind", MS_BIND, 0},
    {"rbind", MS_BIND | MS_REC, 0},
    {"noatime", MS_NOATIME, 0},
    {"atime", 0, MS_NOATIME},
    {"nodiratime", MS_NODIRATIME, 0},
    {"relatime", MS_RELATIME, 0},
    {"strictatime", MS_STRICTATIME, 0},
    {"lazytime", MS_LAZYTIME, 0},
}};

/// What mount.nfs says, what kind of error it is, and what helps.
struct KnownFailure {
  std::string_view text;
  ErrorCode code;
  std::string_view hint;
};
constexpr std::array<KnownFailure, 14> k_known_failures{{
    {"access denied by server", ErrorCode::permission,
     "the server does not export this path to this host: run `sharefs probe HOST`, then `sharefs export` on the "
     "server"},
    {"rpc.statd is not running", ErrorCode::failed,
     "start it: `systemctl start rpc-statd`; NFS version 4 does not need it"},
    {"must be superuser", ErrorCode::permission, "run sharefs as root"},
    {"Operation not permitted", ErrorCode::permission,
     "in a container, mounting needs CAP_SYS_ADMIN; else the server may insist on a reserved port (`secure`)"},
    {"Permission denied", ErrorCode::permission, "run `sharefs probe HOST`"},
    {"mount point", ErrorCode::not_found, "make the directory first"},
    {"No such file or directory", ErrorCode::not_found,
     "the server has no such path, or exports it under another name (`fsid=0`): run `sharefs probe HOST`"},
    {"requested NFS version or transport protocol is not supported", ErrorCode::unsupported,
     "run `sharefs probe HOST` to see which versions the server offers"},
    {"Protocol not supported", ErrorCode::unsupported,
     "run `sharefs probe HOST` to see which versions the server offers"},
    {"an incorrect mount option was specified", ErrorCode::usage, "check the share's `options`, see nfs(5)"},
    {"timed out", ErrorCode::timeout, "the server does not answer: run `sharefs probe HOST`"},
    {"Connection refused", ErrorCode::failed, "no NFS server is running there: run `sharefs probe HOST`"},
    {"busy or already mounted", ErrorCode::busy, ""},
    {"mount system call failed", ErrorCode::failed, "check the share's `options` against nfs(5); `dmesg` may say more"},
}};

std::string with_host(std::string_view hint, const std::string& source) {
  std::string result(hint);
  const std::string host = source.substr(0, source.find(":/"));
  if (const auto at = result.find("HOST"); at != std::string::npos)
    result.replace(at, 4, host);
  return result;
}

/// The mount point as the mount table will name it. A target that is reached through a link has another name there.
/// Asked in a child; where that gives no answer, `target` itself.
std::string real_target(const std::string& target) {
  const auto real = in_child(std::nullopt, k_resolve_deadline, [&target]() -> Result<std::string> {
    const std::unique_ptr<char, decltype(&std::free)> path(::realpath(target.c_str(), nullptr), std::free);
    return std::string(path ? path.get() : "");
  });
  return real && !real->empty() ? *real : target;
}

bool is_new_mount(const MountTable& before, const MountTable& after, const std::string& target) {
  const MountEntry* now = after.at(target);
  return now != nullptr && is_nfs(*now) &&
         std::none_of(before.entries().begin(), before.entries().end(),
                      [now](const MountEntry& old) { return old.id == now->id && old.target == now->target; });
}

bool has_option(const std::string& options, std::string_view name) {
  const auto words = split(options, ',');
  return std::find(words.begin(), words.end(), name) != words.end();
}

/// The first line that says something, without the name of the program.
std::string first_line(const std::string& stderr_text) {
  std::string line;
  for (const std::string& one : split_lines(stderr_text))
    if (line.empty())
      line = std::string(trim(one));
  if (line.starts_with("mount.nfs"))
    if (const auto colon = line.find(": "); colon != std::string::npos)
      line = line.substr(colon + 2);
  while (line.ends_with('.'))
    line.pop_back();
  return line;
}

Result<void> mount_nfs(const MountCall& call) {
  const std::string target = real_target(call.target);
  const auto before = read_mount_table();
  if (!before)
    return fail(before.error());
  Command command;
  command.argv = {call.fs_type == "nfs4" ? "mount.nfs4" : "mount.nfs", call.source, call.target};
  if (!call.options.empty())
    command.argv.insert(command.argv.end(), {"-o", call.options});
  command.environment = {{"PATH", "/usr/sbin:/sbin:/usr/bin:/bin"}, {"LC_ALL", "C"}};
  command.deadline = call.deadline;
  const auto ran = run_process(command);
  if (!ran && ran.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, "`" + command.argv[0] + "` is not installed",
                "run `apt-get install nfs-common` (Debian, Ubuntu) or `dnf install nfs-utils` (RHEL, Rocky)");
  if (!ran)
    return fail(ran.error());
  const auto after = read_mount_table();
  if (!after)
    return fail(after.error());
  if (is_new_mount(*before, *after, target))
    return {}; // even if the deadline passed at that moment
  const std::string line = first_line(ran->err);
  if (ran->timed_out)
    return fail(ErrorCode::timeout,
                call.target + ": mount.nfs gave no answer within " +
                    format_duration(call.deadline / std::chrono::microseconds(1)) + (line.empty() ? "" : ": " + line),
                with_host("run `sharefs probe HOST`", call.source));
  if (ran->exit_code != 0)
    return fail(mount_error(call, ran->err));
  // mount.nfs does not always say so before it goes to the background.
  if (has_option(call.options, "bg"))
    return fail(ErrorCode::failed, call.target + ": backgrounding: nothing is mounted yet, mount.nfs goes on trying",
                with_host("the server does not answer: run `sharefs probe HOST`", call.source));
  return fail(ErrorCode::failed,
              call.target + ": mount.nfs reported success, but nothing is mounted" + (line.empty() ? "" : ": " + line));
}

Result<void> mount_other(const MountCall& call) {
  const MountFlags options = split_mount_options(call.options);
  const auto done = in_child(std::nullopt, call.deadline, [&]() -> Result<std::string> {
    if (::mount(call.source.c_str(), call.target.c_str(), call.fs_type.c_str(), options.flags, options.rest.c_str()) !=
        0)
      return fail(errno_error(errno, call.target + ": cannot mount " + call.fs_type,
                              errno == ENODEV ? "the kernel lacks it: run `modprobe " + call.fs_type + "`" : ""));
    return std::string();
  });
  if (!done)
    return fail(done.error());
  return {};
}

bool is_in(const MountTable& table, const MountEntry& mount) {
  return std::any_of(table.entries().begin(), table.entries().end(), [&mount](const MountEntry& entry) {
    return entry.id == mount.id && entry.target == mount.target && entry.source == mount.source;
  });
}

/// Waits for the end of umount2(2), or of the mount. True if the mount has left the table.
Result<bool> watch_unmount(WorkingChild& child, const MountEntry& mount, const UnmountCall& call) {
  const Deadline deadline = deadline_in(call.deadline);
  std::optional<Deadline> detached;
  for (;;) {
    const bool ended = !child.drain();
    const auto table = read_mount_table();
    if (!table)
      return fail(table.error());
    const bool gone = !is_in(*table, mount);
    if (gone && !detached)
      detached = Clock::now();
    if (ended)
      return gone;
    // A plain unmount that has left the table may still be writing dirty pages to a live server: give it the time.
    const bool impatient = (call.force || call.lazy) && detached && Clock::now() >= *detached + k_detached_grace;
    if (impatient || Clock::now() >= deadline)
      return gone;
    pollfd end{child.fd(), POLLIN, 0};
    ::poll(&end, 1, poll_time(deadline, k_look_interval));
  }
}

Error unmount_error(const UnmountCall& call, int error_number) {
  if (error_number == EBUSY)
    return {ErrorCode::busy,
            call.target + ": is in use",
            "`fuser -m` can hang on a dead server; `sharefs umount --lazy` detaches it at once",
            {}};
  if (error_number == EINVAL)
    return {ErrorCode::not_found, call.target + ": is not a mount point", {}, {}};
  return errno_error(error_number, call.target, error_number == EPERM ? "run sharefs as root" : "");
}

} // namespace

Result<MountTable> read_mount_table() {
  auto info = read_mountinfo();
  for (int reads = 1; info && info->torn && reads < k_max_table_reads; ++reads)
    info = read_mountinfo();
  if (!info)
    return fail(info.error());
  return MountTable::parse(info->text);
}

MountFlags split_mount_options(const std::string& options) {
  MountFlags result;
  std::vector<std::string> rest;
  for (const std::string& word : split(options, ',')) {
    const auto* known = std::find_if(k_flag_words.begin(), k_flag_words.end(),
                                     [&word](const FlagWord& flag) { return flag.word == word; });
    if (known != k_flag_words.end())
      result.flags = (result.flags | known->set) & ~known->clear;
    else if (!word.empty())
      rest.push_back(word);
  }
  result.rest = join(rest, ",");
  return result;
}

Error mount_error(const MountCall& call, const std::string& stderr_text) {
  std::string line = first_line(stderr_text);
  if (line.empty())
    line = "mount.nfs failed without a word";
  const auto* known = std::find_if(k_known_failures.begin(), k_known_failures.end(), [&](const KnownFailure& failure) {
    return stderr_text.find(failure.text) != std::string::npos;
  });
  if (known == k_known_failures.end())
    return {ErrorCode::failed, call.target + ": " + line, {}, {}};
  return {known->code, call.target + ": " + line, with_host(known->hint, call.source), {}};
}

Result<void> make_mount(const MountCall& call) {
  return call.fs_type == "nfs" || call.fs_type == "nfs4" ? mount_nfs(call) : mount_other(call);
}

Result<void> end_mount(const UnmountCall& call) {
  const auto before = read_mount_table();
  if (!before)
    return fail(before.error());
  const MountEntry* found = before->at(call.target);
  if (found == nullptr)
    return fail(ErrorCode::not_found, call.target + ": is not a mount point");
  const MountEntry mount = *found;
  const int flags = UMOUNT_NOFOLLOW | (call.force ? MNT_FORCE : 0) | (call.lazy ? MNT_DETACH : 0);
  auto child = WorkingChild::start(std::nullopt, [&](int fd) {
    const int error = ::umount2(call.target.c_str(), flags) == 0 ? 0 : errno;
    write_all(fd, {reinterpret_cast<const char*>(&error), sizeof error});
  });
  if (!child)
    return fail(child.error());
  const auto gone = watch_unmount(*child, mount, call);
  const bool ended = child->fd() < 0;
  int error = 0;
  const bool told = child->result().size() == sizeof error;
  if (told)
    child->result().copy(reinterpret_cast<char*>(&error), sizeof error);
  // The last v4.2 mount of a dead server: out of the table, but umount2 would block for a minute. A plain unmount
  // that is out of the table is left alone, because killing it could lose what it is still writing.
  if (!ended && (!gone || !*gone || call.force || call.lazy))
    child->process().kill_and_reap();
  if (ended)
    child->process().reap_until(deadline_in(k_reap_grace));
  if (!gone)
    return fail(gone.error());
  if (*gone)
    return {};
  if (told && error != 0)
    return fail(unmount_error(call, error));
  // Between the last look and the kill it may have gone.
  if (const auto table = read_mount_table(); table && !is_in(*table, mount))
    return {};
  if (told)
    return fail(ErrorCode::busy, call.target + ": is still mounted");
  return fail(ErrorCode::timeout,
              call.target + ": not unmounted within " + format_duration(call.deadline / std::chrono::microseconds(1)),
              "the server does not answer: `sharefs umount --force --lazy` detaches it");
}

} // namespace sharefs::sys
