// end_mount: in a child, from the directory that was checked, judged by the mount table.
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/walk.hpp"
#include "sys/mounts/mount_watch.hpp"
#include "sys/mounts/mounting.hpp"
#include "sys/process/child.hpp"
#include "sys/process/interrupt.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/mount.h>

namespace sharefs::sys {
namespace {

/// How often the mount table is read while umount2(2) is under way.
constexpr std::chrono::milliseconds k_table_interval{25};
/// After a lazy or forced unmount has left the table, the child is waited for no longer than this.
constexpr std::chrono::milliseconds k_detached_grace{200};

bool is_in(const MountTable& table, const MountEntry& mount) {
  return std::any_of(table.entries().begin(), table.entries().end(), [&mount](const MountEntry& entry) {
    return entry.id == mount.id && entry.target == mount.target && entry.source == mount.source;
  });
}

/// In the child: umount2(2) from within the directory above, which was reached without links. The last component is
/// resolved by umount2 itself, as nothing else can name a dead mount without asking its server.
void unmount_in_child(const UnmountCall& call, int fd) {
  const int flags = UMOUNT_NOFOLLOW | (call.force ? MNT_FORCE : 0) | (call.lazy ? MNT_DETACH : 0);
  const Fd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto above = walk(root.get(), parent_path(call.target), {.links = Links::none});
  WireWriter answer;
  if (!above)
    answer.put(EINVAL).put(above.error().error().message);
  else if (!above->is_directory() || ::fchdir(above->fd.get()) != 0 ||
           ::umount2(base_name(call.target).c_str(), flags) != 0)
    answer.put(above->is_directory() ? errno : ENOTDIR).put(std::string_view());
  else
    answer.put(0).put(std::string_view());
  write_all(fd, answer.bytes());
}

/// Waits for the end of umount2(2), or of the mount. True if the mount has left the table.
Result<bool> watch_unmount(WorkingChild& child, const MountEntry& mount, const UnmountCall& call) {
  const Deadline deadline = deadline_in(call.deadline);
  std::optional<Deadline> detached;
  MountWatch mounts;
  for (;;) {
    const bool ended = !child.drain();
    const auto table = mounts.current();
    if (!table)
      return fail(table.error());
    const bool gone = !is_in(*table, mount);
    if (gone && !detached)
      detached = Clock::now();
    if (ended)
      return gone;
    // A plain unmount that has left the table may still be writing dirty pages to a live server: give it the time.
    const bool impatient = (call.force || call.lazy) && detached && Clock::now() >= *detached + k_detached_grace;
    if (impatient || interrupted() || Clock::now() >= deadline)
      return gone;
    pollfd end{child.fd(), POLLIN, 0};
    ::poll(&end, 1, poll_time(deadline, k_table_interval));
  }
}

Error unmount_error(const UnmountCall& call, int error_number, const std::string& text) {
  if (!text.empty())
    return {ErrorCode::conflict, text, {}, {}};
  if (error_number == EBUSY)
    return {ErrorCode::busy, call.target + ": is in use", "`--lazy` detaches it at once", {}};
  if (error_number == EINVAL)
    return {ErrorCode::not_found, call.target + ": is not a mount point", {}, {}};
  return errno_error(error_number, call.target, error_number == EPERM ? "run sharefs as root" : "");
}

} // namespace

Result<void> end_mount(const UnmountCall& call) {
  const auto before = MountWatch().current();
  if (!before)
    return fail(before.error());
  const MountEntry* found = before->at(call.target);
  if (found == nullptr)
    return fail(ErrorCode::not_found, call.target + ": is not a mount point");
  const MountEntry mount = *found;
  auto child = WorkingChild::start(std::nullopt, [&call](int fd) { unmount_in_child(call, fd); });
  if (!child)
    return fail(child.error());
  const auto gone = watch_unmount(*child, mount, call);
  const bool ended = child->fd() < 0;
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
  WireReader reader(child->result());
  const int error = reader.get<int>();
  const std::string text(reader.text());
  if (reader.ok() && error != 0)
    return fail(unmount_error(call, error, text));
  // Between the last read of the table and the kill it may have gone.
  if (const auto table = MountWatch().current(); table && !is_in(*table, mount))
    return {};
  if (reader.ok())
    return fail(ErrorCode::busy, call.target + ": is still mounted");
  if (interrupted())
    return fail(ErrorCode::interrupted, call.target + ": is still mounted");
  return fail(ErrorCode::timeout,
              call.target + ": not unmounted within " + format_duration(call.deadline / std::chrono::microseconds(1)),
              "the server does not answer: `--force --lazy` detaches it");
}

} // namespace sharefs::sys
