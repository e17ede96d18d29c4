#include "plan/ground.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/child.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

namespace sharefs::plan {

namespace {

std::string quoted(const std::string& path) {
  return "`" + path + "`";
}

std::string hostname() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

/// The next directory below `parent`, never through a link.
Result<sys::Fd> step_into(int parent, const std::string& name, const std::string& path) {
  sys::Fd next(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (next)
    return next;
  const int error = errno;
  struct stat status{};
  if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISLNK(status.st_mode))
      return fail(ErrorCode::permission,
                  quoted(path) + " is a symbolic link; sharefs does not follow links in users' homes",
                  "give the real path, or let the user make it a directory");
    if (!S_ISDIR(status.st_mode))
      return fail(ErrorCode::conflict, path + ": expected a directory, found something else");
  }
  return fail(errno_error(error, path));
}

} // namespace

std::string Found::text() const {
  if (!exists)
    return "nothing";
  if (is_link())
    return "a link to " + quoted(link);
  return is_directory() ? "a directory" : S_ISREG(status.st_mode) ? "a file" : "a special file";
}

Result<Ground> Ground::enter(const std::string& root, const std::optional<Actor>& actor) {
  ::umask(0); // every action names its mode
  Ground ground(root, actor);
  if (actor)
    if (const int refused = sys::become(actor->user); refused != 0)
      return fail(errno_error(refused, "cannot act as " + quoted(actor->user.name), "run sharefs as root"));
  return ground;
}

Result<sys::Location> Ground::place(const std::string& path) const {
  const auto whole = normalize_path(path);
  if (path.empty() || path.front() != '/' || whole == "/")
    return fail(ErrorCode::failed, quoted(path) + " is not a path that sharefs can act on");
  if (m_actor)
    return place_beneath(whole);
  sys::Location place{m_root.open(parent_path(whole), O_PATH | O_DIRECTORY), base_name(whole)};
  if (!place.directory)
    return fail(errno_error(errno, parent_path(whole)));
  return place;
}

Result<sys::Location> Ground::place_beneath(const std::string& path) const {
  const auto beneath = normalize_path(m_actor->beneath);
  if (beneath == "/" || path == beneath || !is_under(path, beneath))
    return fail(ErrorCode::permission, quoted(path) + " does not lie below " + quoted(beneath));
  sys::Location place{m_root.open(parent_path(beneath), O_PATH | O_DIRECTORY), base_name(beneath)};
  if (!place.directory)
    return fail(errno_error(errno, parent_path(beneath)));
  std::string here = beneath;
  for (const auto& next : split(std::string_view(path).substr(beneath.size() + 1), '/')) {
    auto entered = step_into(place.directory.get(), place.name, here);
    if (!entered)
      return fail(entered.error());
    place = sys::Location{std::move(*entered), next};
    here = join_path(here, next);
  }
  return place;
}

Result<Found> look(const sys::Location& place, const std::string& path) {
  Found found;
  if (::fstatat(place.directory.get(), place.name.c_str(), &found.status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT)
      return found;
    return fail(errno_error(errno, path));
  }
  found.exists = true;
  if (found.is_link()) {
    std::array<char, PATH_MAX> text{};
    const auto size = ::readlinkat(place.directory.get(), place.name.c_str(), text.data(), text.size());
    if (size < 0)
      return fail(errno_error(errno, path));
    found.link.assign(text.data(), static_cast<std::size_t>(size));
  }
  return found;
}

Result<Found> look(const Ground& ground, const std::string& path) {
  const auto place = ground.place(path);
  if (!place && place.error().code == ErrorCode::not_found)
    return Found{};
  if (!place)
    return fail(place.error());
  return look(*place, path);
}

tl::unexpected<Error> conflict(const std::string& path, const std::string& expected, const std::string& found) {
  return fail(ErrorCode::conflict, path + ": expected " + expected + ", found " + found,
              "somebody else changed it in the meantime: run the command again, it plans anew");
}

int rename_exclusively(const sys::Location& from, const sys::Location& to) {
  const int source = from.directory.get();
  const int target = to.directory.get();
  if (::renameat2(source, from.name.c_str(), target, to.name.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS)
    return errno;
  struct stat status{};
  if (::fstatat(target, to.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    return EEXIST;
  return ::renameat(source, from.name.c_str(), target, to.name.c_str()) == 0 ? 0 : errno;
}

std::string temporary_name(const std::string& name, const std::string& purpose) {
  const auto ending = ".sharefs-" + purpose + "-" + hostname().substr(0, 64);
  return "." + name.substr(0, NAME_MAX - 1 - ending.size()) + ending;
}

} // namespace sharefs::plan
