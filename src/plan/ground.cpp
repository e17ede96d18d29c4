#include "plan/ground.hpp"

#include "base/path.hpp"
#include "sys/process/become.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

namespace sharefs::plan {

namespace {

std::string hostname() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

} // namespace

Result<Ground> Ground::enter(const std::string& root, const std::optional<Actor>& actor) {
  ::umask(0); // every action names its mode
  sys::Fd directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory)
    return fail(errno_error(errno, root));
  if (actor)
    if (const int refused = sys::become(actor->user); refused != 0)
      return fail(errno_error(refused, "cannot act as `" + actor->user.name + "`", "run sharefs as root"));
  return Ground(std::move(directory), actor);
}

Result<sys::Walked> Ground::find(const std::string& path, bool guarded) const {
  const auto whole = normalize_path(path);
  if (path.empty() || path.front() != '/' || whole == "/")
    return fail(ErrorCode::failed, "`" + path + "` is not a path that sharefs can act on");
  sys::WalkRule rule{.links = sys::Links::trusted, .guarded = guarded};
  if (m_actor) {
    rule.beneath = normalize_path(m_actor->beneath);
    rule.device = m_actor->device;
    rule.inode = m_actor->inode;
    if (rule.beneath == "/" || whole == rule.beneath || !is_under(whole, rule.beneath))
      return fail(ErrorCode::permission, "`" + whole + "` does not lie below `" + rule.beneath + "`");
  }
  auto found = sys::walk(m_root.get(), whole, rule);
  if (!found)
    return fail(found.error().error());
  if (found->not_directory)
    return fail(errno_error(ENOTDIR, path));
  return std::move(*found);
}

Result<void> check_parent(const sys::Walked& found, const std::string& path) {
  if (found.parent_missing)
    return fail(errno_error(ENOENT, parent_path(path)));
  return {};
}

tl::unexpected<Error> conflict(const std::string& path, const std::string& expected, const std::string& found) {
  return fail(ErrorCode::conflict, path + ": expected " + expected + ", found " + found,
              "something else changed it: see what it is, then run the command again");
}

bool is_second_name(const sys::Walked& one, const sys::Walked& other) {
  return one.exists() && other.exists() && !one.is_directory() && one.status.st_dev == other.status.st_dev &&
         one.status.st_ino == other.status.st_ino;
}

int rename_exclusively(const sys::Walked& from, const sys::Walked& to) {
  const int source = from.directory.get();
  const int target = to.directory.get();
  const bool linked = is_second_name(from, to);
  if (!linked && ::renameat2(source, from.name.c_str(), target, to.name.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  if (!linked && errno != EINVAL && errno != ENOSYS)
    return errno;
  // NFS has no such rename. A second name of a file is made exclusively everywhere; then the first one goes.
  struct stat status{};
  if (linked || (!from.is_directory() && ::linkat(source, from.name.c_str(), target, to.name.c_str(), 0) == 0)) {
    if (::fstatat(source, from.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return errno;
    if (status.st_ino != from.status.st_ino || status.st_dev != from.status.st_dev)
      return ESTALE; // somebody has put a new file there
    return ::unlinkat(source, from.name.c_str(), 0) == 0 ? 0 : errno;
  }
  if (!from.is_directory() && errno == EEXIST)
    return EEXIST;
  // Of a directory the worst is that an empty one, made at this moment, is replaced: rename(2) refuses all else.
  if (::fstatat(target, to.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    return EEXIST;
  return ::renameat(source, from.name.c_str(), target, to.name.c_str()) == 0 ? 0 : errno;
}

std::string temporary_name(const std::string& name, const std::string& purpose) {
  const auto ending = ".sharefs-" + purpose + "-" + hostname().substr(0, 64);
  return "." + name.substr(0, NAME_MAX - 1 - ending.size()) + ending;
}

} // namespace sharefs::plan
