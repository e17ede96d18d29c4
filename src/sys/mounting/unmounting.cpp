// end_mount: unmounts in a child, from within the directory that was checked; success is judged by the mount table.
#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/walk.hpp"
#include "sys/mounting/local_mounts.hpp"
#include "sys/mounting/mounting.hpp"
#include "sys/mounts/mount_watch.hpp"
#include "sys/process/child.hpp"
#include "sys/process/interrupt.hpp"
#include "sys/process/wire.hpp"
#include "sys/programs/process.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <sys/mount.h>

namespace sharefs::sys {
namespace {

/// How long the child is waited for after a lazily or forcibly unmounted mount has left the table.
constexpr std::chrono::milliseconds k_detached_grace{200};

bool is_in(const MountTable& table, const MountEntry& mount) {
  return std::any_of(table.entries().begin(), table.entries().end(), [&mount](const MountEntry& entry) {
    return entry.id == mount.id && entry.target == mount.target && entry.source == mount.source;
  });
}

Error unmount_error(const UnmountCall& call, int error_number) {
  if (error_number == EBUSY)
    return {
        ErrorCode::busy,
        call.target + ": is in use",
        fmt::format("`fuser -vm {0}` says by whom; `umount --lazy {0}` detaches it at once", shell_quote(call.target)),
        {}};
  if (error_number == EINVAL)
    return {ErrorCode::not_found, call.target + ": is not a mount point", {}, {}};
  return errno_error(error_number, call.target, error_number == EPERM ? "run sharefs as root" : "");
}

/// Calls umount2(2), in the child, from within the parent directory, which was reached without links. umount2 itself
/// resolves the last component, because any other call on a dead mount would ask its server.
Result<void> unmount_in_child(const UnmountCall& call) {
  TRY(become_reaching(call.options));
  const int flags = UMOUNT_NOFOLLOW | (call.force ? MNT_FORCE : 0) | (call.lazy ? MNT_DETACH : 0);
  const auto above = walk_from("/", parent_path(call.target), {.links = Links::none});
  if (!above)
    return fail(ErrorCode::conflict, above.error().message,
                "if it lies on a mount that is dead, `sharefs umount --lazy` of that one detaches both");
  if (!above->is_directory())
    return fail(unmount_error(call, ENOTDIR));
  if (::fchdir(above->fd.get()) == 0 && ::umount2(base_name(call.target).c_str(), flags) == 0)
    return {};
  if (errno != EPERM || call.fs_type != k_user_image)
    return fail(unmount_error(call, errno));
  // fuse(4): a user's own FUSE mount can be ended by fusermount.
  Command command;
  command.argv = {"fusermount3", call.lazy ? "-uz" : "-u", "--", call.target};
  auto done = run_process(command);
  if (!done && done.error().code == ErrorCode::not_found) {
    command.argv[0] = "fusermount";
    done = run_process(command);
  }
  TRY(done);
  if (done->ok())
    return {};
  const auto message = std::string(trim(done->err));
  return fail(message.find("busy") != std::string::npos
                  ? unmount_error(call, EBUSY)
                  : Error{ErrorCode::failed, call.target + ": " + message, {}, {}});
}

} // namespace

Result<void> end_mount(const UnmountCall& call) {
  MountWatch mounts;
  TRY_ASSIGN(const auto before, mounts.current());
  const MountEntry* found = before.at(call.target);
  if (found == nullptr)
    return fail(ErrorCode::not_found, call.target + ": is not a mount point");
  const MountEntry mount = *found;
  const auto is_gone = [&] {
    const auto table = mounts.current();
    return table && !is_in(*table, mount);
  };
  // The last v4.2 mount of a dead server leaves the table while umount2 still blocks for a minute. A plain unmount
  // whose mount has left the table may still write dirty pages to a live server: it gets the time and is never killed.
  const bool detaches = call.force || call.lazy;
  std::optional<Deadline> detached;
  const auto given_up = [&] {
    if (detaches && !detached && is_gone())
      detached = deadline_in(k_detached_grace);
    return interrupted() || (detached && Clock::now() >= *detached);
  };
  const auto unmount = [&call](int fd) { write_all(fd, WireWriter().put(unmount_in_child(call)).bytes()); };
  TRY_ASSIGN(auto child, WorkingChild::start(std::nullopt, unmount));
  const bool ended = child.drain_until(deadline_in(call.deadline), given_up);
  if (ended)
    child.process().reap_until(deadline_in(k_reap_grace));
  else if (detaches || !is_gone())
    child.process().kill_and_reap();
  if (is_gone())
    return {};
  WireReader reader(child.result());
  const auto unmounted = reader.get<Result<void>>();
  if (reader.ok())
    TRY(unmounted);
  if (reader.ok())
    return fail(ErrorCode::busy, call.target + ": is still mounted");
  if (interrupted())
    return fail(ErrorCode::interrupted, call.target + ": is still mounted");
  return fail(ErrorCode::timeout,
              call.target + ": not unmounted within " + format_duration(call.deadline / std::chrono::microseconds(1)),
              "the server does not answer: `--force --lazy` detaches it");
}

} // namespace sharefs::sys
