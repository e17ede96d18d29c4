#include "plan/ground.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/process/child.hpp"

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

/// A name in an open directory, opened without following it: fstat and readlink then speak of one and the same thing,
/// whatever somebody does to the name meanwhile.
Result<sys::Fd> open_name(int directory, const std::string& name, const std::string& path) {
  sys::Fd fd(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd)
    return fail(errno_error(errno, path));
  return fd;
}

Result<struct stat> status_of(int fd, const std::string& path) {
  struct stat status{};
  if (::fstat(fd, &status) != 0)
    return fail(errno_error(errno, path));
  return status;
}

Result<std::string> link_text(int directory, const char* name, const std::string& path) {
  std::array<char, PATH_MAX> text{};
  const auto size = ::readlinkat(directory, name, text.data(), text.size());
  if (size < 0)
    return fail(errno_error(errno, path));
  return std::string(text.data(), static_cast<std::size_t>(size));
}

/// The components of `path`, last first.
void push_components(std::vector<std::string>& pending, std::string_view path) {
  const auto parts = split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    if (!part->empty() && *part != ".")
      pending.push_back(*part);
}

/// A walk through directories from the root on. Links stay inside the root, as in chroot(2). Root itself follows only
/// links that root has made: in a directory that others may write (a share with access 0777, say) any other link could
/// have been planted to make root act elsewhere.
class Walk {
 public:
  explicit Walk(sys::Fd root) { m_way.push_back({std::move(root), "/"}); }

  Result<sys::Fd> to(const std::string& path) {
    push_components(m_pending, path);
    while (!m_pending.empty()) {
      const auto name = std::move(m_pending.back());
      m_pending.pop_back();
      if (name != "..") {
        if (auto entered = enter(name); !entered)
          return fail(entered.error());
      } else if (m_way.size() > 1) {
        m_way.pop_back();
      }
    }
    return std::move(m_way.back().directory);
  }

 private:
  struct Stage {
    sys::Fd directory;
    std::string path;
  };

  Result<void> enter(const std::string& name) {
    const auto path = join_path(m_way.back().path, name);
    auto next = open_name(m_way.back().directory.get(), name, path);
    if (!next)
      return fail(next.error());
    const auto status = status_of(next->get(), path);
    if (!status)
      return fail(status.error());
    if (S_ISDIR(status->st_mode)) {
      m_way.push_back({std::move(*next), path});
      return {};
    }
    if (!S_ISLNK(status->st_mode))
      return fail(errno_error(ENOTDIR, path));
    return follow(next->get(), *status, path);
  }

  Result<void> follow(int link, const struct stat& status, const std::string& path) {
    constexpr int k_most_links = 40; // as the kernel's MAXSYMLINKS
    if (++m_links > k_most_links)
      return fail(errno_error(ELOOP, path));
    if (::geteuid() == 0 && status.st_uid != 0)
      return fail(ErrorCode::permission,
                  quoted(path) + " is a symbolic link that belongs to uid " + std::to_string(status.st_uid) +
                      "; as root sharefs follows only root's own links",
                  "give the real path");
    const auto target = link_text(link, "", path);
    if (!target)
      return fail(target.error());
    if (target->starts_with('/'))
      m_way.resize(1);
    push_components(m_pending, *target);
    return {};
  }

  std::vector<Stage> m_way; ///< the directories on the way, for `..`
  std::vector<std::string> m_pending;
  int m_links = 0;
};

/// The next directory below `parent` in a user's home: never through a link.
Result<sys::Fd> step_into(int parent, const std::string& name, const std::string& path) {
  auto next = open_name(parent, name, path);
  if (!next)
    return next;
  const auto status = status_of(next->get(), path);
  if (!status)
    return fail(status.error());
  if (S_ISLNK(status->st_mode))
    return fail(ErrorCode::permission,
                quoted(path) + " is a symbolic link; sharefs does not follow links in users' homes",
                "give the real path, or let the user make it a directory");
  if (!S_ISDIR(status->st_mode))
    return fail(errno_error(ENOTDIR, path));
  return next;
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
  return place_from_root(whole);
}

Result<sys::Location> Ground::place_from_root(const std::string& path) const {
  auto root = m_root.open("/", O_PATH | O_DIRECTORY);
  if (!root)
    return fail(errno_error(errno, "the root directory"));
  auto directory = Walk(std::move(root)).to(parent_path(path));
  if (!directory)
    return fail(directory.error());
  return sys::Location{std::move(*directory), base_name(path)};
}

Result<sys::Location> Ground::place_beneath(const std::string& path) const {
  const auto beneath = normalize_path(m_actor->beneath);
  if (beneath == "/" || path == beneath || !is_under(path, beneath))
    return fail(ErrorCode::permission, quoted(path) + " does not lie below " + quoted(beneath));
  auto place = place_from_root(beneath);
  std::string here = beneath;
  for (const auto& next : split(std::string_view(path).substr(beneath.size() + 1), '/')) {
    if (!place)
      return place;
    auto entered = step_into(place->directory.get(), place->name, here);
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
    auto text = link_text(place.directory.get(), place.name.c_str(), path);
    if (!text)
      return fail(text.error());
    found.link = std::move(*text);
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
              "something else changed it: look at it, then run the command again");
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
