#include "sys/mounting/local_mounts.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/walk.hpp"
#include "sys/identity/identity.hpp"
#include "sys/mounts/mount_watch.hpp"
#include "sys/process/become.hpp"
#include "sys/programs/process.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>

namespace sharefs::sys {

namespace {

/// Returns the attributes for mount_setattr(2) that set the restrictions of the options and clear the others.
mount_attr restriction_attributes(const std::string& options) {
  mount_attr attributes{};
  const auto words = split(options, ',');
  for (const auto& [word, flag] : {std::pair{"ro", MOUNT_ATTR_RDONLY}, std::pair{"nosuid", MOUNT_ATTR_NOSUID},
                                   std::pair{"nodev", MOUNT_ATTR_NODEV}, std::pair{"noexec", MOUNT_ATTR_NOEXEC}})
    (std::ranges::count(words, word) > 0 ? attributes.attr_set : attributes.attr_clr) |=
        static_cast<std::uint64_t>(flag);
  return attributes;
}

/// Returns the user of the option NAME=UID; nullopt if there is no such option.
Result<std::optional<User>> user_in(const std::string& options, std::string_view name) {
  for (const auto& word : split(options, ','))
    if (word.starts_with(name))
      return local_user(word.substr(name.size())).map([](User user) { return std::optional(std::move(user)); });
  return std::nullopt;
}

/// Becomes the user for good, but keeps the capabilities that mounting needs.
Result<void> become_mounting(const User& user) {
  const int error = become(user, 1U << CAP_SYS_ADMIN | 1U << CAP_DAC_OVERRIDE);
  return error == 0 ? Result<void>{} : fail(errno_error(error, "cannot become " + user.name));
}

/// Opens an image for reading. The kernel trusts the content of a file system, so only root, or the given owner, may be
/// able to write the image. An image of root must also lie where nobody else can replace it. An image of an owner lies
/// on a share and is opened as this user, while this process keeps the capabilities for mounting. If others can replace
/// that one, they can only put another file of the same owner there.
Result<Fd> open_image(const std::string& path, const std::optional<User>& owner) {
  if (owner)
    TRY(become_mounting(*owner));
  TRY_ASSIGN(const auto found, walk_from("/", path, {.links = Links::none, .guarded = !owner}));
  Fd image(found.exists()
               ? ::openat(found.directory.get(), found.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
               : -1);
  struct stat status{};
  if (!image || ::fstat(image.get(), &status) != 0)
    return fail(errno_error(found.exists() ? errno : ENOENT, path));
  const bool trusted = status.st_uid == 0 || (owner && status.st_uid == owner->uid);
  if (!S_ISREG(status.st_mode) || !trusted || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::permission,
                fmt::format("{}: is no file that only {} can write", path, owner ? owner->name : "root"));
  return image;
}

/// Opens a loop device for the image that is released together with the mount; `path` gets its path.
Result<Fd> open_loop_device(const Fd& image, const std::string& name, std::string& path) {
  constexpr int k_attempts = 32; // other processes may take the same free device
  const auto failed = [&] {
    return fail(ErrorCode::unsupported, fmt::format("no loop device can be had for {}: {}", name, errno_text(errno)),
                "`modprobe loop`; in a container it needs /dev/loop-control and the devices");
  };
  const Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control)
    return failed();
  loop_config config{};
  config.fd = static_cast<std::uint32_t>(image.get());
  config.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR;
  ::memcpy(config.info.lo_file_name, name.data(), std::min(name.size(), sizeof config.info.lo_file_name - 1));
  for (int attempt = 0; attempt < k_attempts; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0)
      return failed();
    path = "/dev/loop" + std::to_string(number);
    Fd device(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!device && (errno == ENOENT || errno == ENXIO)) // the kernel's next number has no device file here
      return fail(ErrorCode::unsupported, fmt::format("no loop device is free for {}, and {} is not there", name, path),
                  "`losetup` shows what has them; in a container it needs more of them");
    if (!device)
      return failed();
    if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0)
      return device;
    if (errno != EBUSY)
      return failed();
  }
  return failed();
}

} // namespace

Result<Fd> open_directory(const std::string& path) {
  const std::string changed_hint = "run `sharefs mount --all --dry-run` to see what has changed";
  auto found = walk_from("/", path, {.links = Links::none});
  if (!found)
    return fail(ErrorCode::conflict, found.error().message, changed_hint);
  if (!found->is_directory())
    return fail(ErrorCode::conflict, path + ": expected a directory, found " + found->text(), changed_hint);
  return std::move(found->fd);
}

Result<void> become_reaching(const std::string& options) {
  TRY_ASSIGN(const auto as, user_in(options, k_reached_as));
  return as ? become_mounting(*as) : Result<void>{};
}

Result<void> attach(const Fd& tree, const Fd& target, const MountCall& call) {
  if (::syscall(SYS_move_mount, tree.get(), "", target.get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) !=
      0)
    return fail(errno_error(errno, "cannot attach the mount to " + call.target,
                            errno == ENOSYS ? "sharefs needs Linux 5.2 or newer" : ""));
  if (read_link(AT_FDCWD, by_descriptor(target.get())) == call.target)
    return {};
  ::umount2(by_descriptor(tree.get()).c_str(), MNT_DETACH);
  return fail(ErrorCode::conflict, call.target + ": the directory was moved away meanwhile; nothing was mounted");
}

/// Changes the attributes of the mount point. If the mount is to be writable, the superblock is changed as well,
/// because mount.nfs makes both read-only.
Result<void> remount_in_child(const MountCall& call) {
  TRY_ASSIGN(const auto target, open_directory(call.target));
  const auto failed = [&] {
    return fail(errno_error(errno, "cannot remount " + call.target,
                            errno == ENOSYS ? "sharefs needs Linux 5.12 or newer for this" : ""));
  };
  const auto table = MountWatch().current();
  const auto* mount = table ? table->at(call.target) : nullptr;
  const bool writable = !restrictions_in(call.options).starts_with("ro");
  if (mount != nullptr && writable && split(mount->super_options, ',').front() == "ro") {
    const Fd context(static_cast<int>(::syscall(SYS_fspick, target.get(), "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC)));
    if (!context || ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_FLAG, "rw", nullptr, 0) != 0 ||
        ::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_RECONFIGURE, nullptr, nullptr, 0) != 0)
      return failed();
  }
  auto attributes = restriction_attributes(call.options);
  if (::syscall(SYS_mount_setattr, target.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0)
    return failed();
  return {};
}

Result<void> bind_in_child(const MountCall& call) {
  TRY_ASSIGN(const auto source, open_directory(call.source));
  TRY(become_reaching(call.options));
  TRY_ASSIGN(const auto target, open_directory(call.target));
  const Fd tree(static_cast<int>(
      ::syscall(SYS_open_tree, source.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  auto attributes = restriction_attributes(call.options);
  attributes.attr_clr = 0;
  if (!tree || ::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0)
    return fail(errno_error(errno, "cannot bind " + call.source + " to " + call.target,
                            errno == ENOSYS ? "sharefs needs Linux 5.12 or newer for this" : ""));
  return attach(tree, target, call);
}

/// Uses the new mount system calls: they need no program, and they mount on the directory that was checked.
Result<void> image_in_child(const MountCall& call) {
  TRY_ASSIGN(const auto target, open_directory(call.target));
  TRY_ASSIGN(const auto owner, user_in(call.options, k_image_owner));
  TRY_ASSIGN(const auto image, open_image(call.source, owner));
  std::string path;
  TRY_ASSIGN(const auto device, open_loop_device(image, call.source, path));
  const Fd context(static_cast<int>(::syscall(SYS_fsopen, k_image, FSOPEN_CLOEXEC)));
  if (!context)
    return fail(ErrorCode::unsupported, fmt::format("this kernel cannot mount {}: {}", call.source, errno_text(errno)),
                "`modprobe squashfs`");
  // The read-ahead of an image on a share is larger, because each request is a round trip.
  constexpr unsigned long k_read_ahead = 2048; // sectors of 512 bytes
  if (owner)
    std::ignore = ::ioctl(device.get(), BLKRASET, k_read_ahead);
  auto attributes = restriction_attributes(call.options);
  const auto set = [&](unsigned command, const char* key, const char* value) {
    return ::syscall(SYS_fsconfig, context.get(), command, key, value, 0) == 0;
  };
  const bool made = set(FSCONFIG_SET_STRING, "source", path.c_str()) && set(FSCONFIG_SET_FLAG, "ro", nullptr) &&
                    set(FSCONFIG_CMD_CREATE, nullptr, nullptr);
  const Fd tree(made ? static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, attributes.attr_set))
                     : -1);
  if (!tree)
    return fail(errno_error(errno, "cannot mount " + call.source, "`dmesg` may say more"));
  return attach(tree, target, call);
}

Result<void> user_image_in_child(const MountCall& call) {
  Command command;
  command.deadline = call.deadline;
  command.argv = {"squashfuse_ll", "-o", call.options, call.source, call.target};
  auto done = run_process(command);
  if (!done && done.error().code == ErrorCode::not_found) {
    command.argv[0] = "squashfuse"; // squashfuse_ll is faster, but not always installed
    done = run_process(command);
  }
  TRY(done);
  return done->ok() ? Result<void>{}
                    : fail(ErrorCode::failed, fmt::format("cannot mount {}: {}", call.source, trim(done->err)));
}

} // namespace sharefs::sys
