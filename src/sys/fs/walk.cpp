#include "sys/fs/walk.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/identity/user_namespace.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <linux/openat2.h>
#include <memory>
#include <optional>
#include <sys/syscall.h>
#include <thread>

namespace sharefs::sys {
namespace {

constexpr int k_most_links = 40; // as the kernel's MAXSYMLINKS

std::string in_backticks(const std::string& path) {
  return "`" + path + "`";
}

/// True for root, and for the user that this process acts as.
bool is_trusted(uid_t owner) {
  return owner == 0 || owner == ::geteuid();
}

/// Names the owner of an entry in a directory with the status `above` (nullptr: the root directory has none). Where
/// only the unmapped root can make entries, an unmapped owner is that root. Elsewhere it is another user, also if this
/// process's own user is not mapped either.
void name_owner(struct stat& entry, const struct stat* above) {
  if (entry.st_uid != k_unmapped_uid || !is_root_unmapped())
    return;
  if (above == nullptr || (above->st_uid == 0 && (above->st_mode & (S_IWGRP | S_IWOTH)) == 0))
    entry.st_uid = 0;
  else if (::geteuid() == k_unmapped_uid)
    entry.st_uid = k_unmapped_uid - 1;
}

class Walk {
 public:
  Walk(int root, std::string_view path, const WalkRule& rule)
      : m_root(root), m_rule(rule), m_beneath(rule.beneath.empty() ? "" : normalize_path(rule.beneath)) {
    push(path);
  }

  tl::expected<Walked, WalkError> run() {
    bool more = jump() || restart();
    while (more && !m_pending.empty()) {
      const std::string name = std::move(m_pending.back());
      m_pending.pop_back();
      more = name == ".." ? leave() : enter(name);
    }
    if (m_error)
      return tl::make_unexpected(std::move(*m_error));
    return finish();
  }

 private:
  // Each of these steps returns true if the walk continues.

  bool stop(int error_number, const std::string& path, std::string reason = {}, bool may_hang = false) {
    m_error = WalkError{error_number, path, std::move(reason), with_rest(path), may_hang};
    return false;
  }

  /// Returns `path` with the pending components appended lexically.
  [[nodiscard]] std::string with_rest(std::string path) const {
    for (auto part = m_pending.rbegin(); part != m_pending.rend(); ++part)
      path = *part == ".." ? parent_path(path) : join_path(path, *part);
    return path;
  }

  /// Adds the components of `path` to the pending ones.
  void push(std::string_view path) {
    const auto parts = split(path, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part)
      if (!part->empty() && *part != ".")
        m_pending.push_back(*part);
  }

  /// Opens the path by one openat2(2) if no component has to be checked and none is a link: the entry itself if its
  /// directory is not needed, or else the nearest existing directory above it. False: the walk must go step by step,
  /// which also finds the reason of an error.
  bool jump() {
    if (m_rule.guarded || m_rule.inode != 0 || m_pending.empty() || is_root_unmapped() ||
        std::ranges::find(m_pending, "..") != m_pending.end())
      return false;
    const std::string path = with_rest("/");
    if (!m_rule.wants_directory && !enters_stop(path) && jump_to(path, O_NOFOLLOW)) {
      if (!stat_open(m_walked.fd.get(), m_walked.status) || S_ISLNK(m_walked.status.st_mode))
        return false;
      m_walked.ancestor = parent_path(path);
      m_walked.name = base_name(path);
      m_pending.clear();
      return true;
    }
    std::string above = path;
    for (std::size_t rest = 1; rest < m_pending.size(); ++rest) {
      above = parent_path(above);
      if (enters_stop(above))
        return false;
      if (jump_to(above, O_DIRECTORY)) {
        m_pending.resize(rest);
        return true;
      }
      if (errno != ENOENT)
        return false;
    }
    return false;
  }

  bool jump_to(const std::string& path, int flags) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_PATH | O_CLOEXEC);
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS;
    m_walked.fd.reset(static_cast<int>(::syscall(SYS_openat2, m_root, path.c_str(), &how, sizeof how)));
    m_here = path;
    return static_cast<bool>(m_walked.fd);
  }

  /// True if `path`, which contains no links, is a mount that must not be entered, or lies below one.
  [[nodiscard]] bool enters_stop(std::string_view path) const {
    if (m_rule.stop_at == nullptr || m_rule.stop_at->empty())
      return false;
    for (std::size_t end = 1; end != std::string_view::npos; end = path.find('/', end + 1))
      if (end > 1 && m_rule.stop_at->contains(path.substr(0, end)))
        return true;
    return m_rule.stop_at->contains(path);
  }

  /// Goes back to the root directory.
  bool restart() {
    m_here = "/";
    m_walked.directory = Fd();
    m_walked.ancestor.clear();
    m_walked.name = ".";
    m_walked.fd.reset(::openat(m_root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!m_walked.fd || !stat_open(m_walked.fd.get(), m_walked.status))
      return stop(errno, "/");
    name_owner(m_walked.status, nullptr);
    return true;
  }

  /// Resolves `..`: walks down from the root again to the directory above, by names that are not links.
  bool leave() {
    push(parent_path(m_here));
    return restart();
  }

  /// Goes to the next component. False without an error: it is the last one that can be reached.
  bool enter(const std::string& name) {
    const std::string path = join_path(m_here, name);
    if (m_rule.stop_at != nullptr && m_rule.stop_at->contains(path))
      return stop(0, path, {}, true);
    Fd next(::openat(m_walked.fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    if (next ? !stat_open(next.get(), status) : errno != ENOENT)
      return stop(errno, path);
    if (next)
      name_owner(status, &m_walked.status);
    if (!check_replaceable(name, path, next ? &status : nullptr))
      return false;
    if (m_rule.inode != 0 && path == m_beneath &&
        (status.st_ino != m_rule.inode || (m_rule.device != 0 && status.st_dev != m_rule.device)))
      return stop(ESTALE, path, "what was mounted there is not there now");
    std::string link;
    if (next && S_ISLNK(status.st_mode)) {
      auto text = read_link(next.get(), "");
      if (!text)
        return stop(errno, path);
      link = std::move(*text);
      if (!m_pending.empty() || m_rule.follow_last)
        return follow(link, status, path);
    }
    m_walked.directory = std::move(m_walked.fd);
    m_walked.ancestor = m_here;
    m_walked.name = name;
    m_walked.fd = std::move(next);
    m_walked.status = status;
    m_walked.link = std::move(link);
    m_here = path;
    if (m_walked.exists() && m_walked.is_directory())
      return true;
    m_walked.not_directory = m_walked.exists() && !m_pending.empty();
    if (m_walked.not_directory)
      m_walked.fd.reset();
    return false;
  }

  /// Stops the walk if somebody else could replace `name` in the current directory.
  bool check_replaceable(const std::string& name, const std::string& path, const struct stat* entry) {
    if (!m_rule.guarded)
      return true;
    const struct stat& directory = m_walked.status;
    const bool ours = is_trusted(directory.st_uid);
    // For an ordinary user the group's write permission is accepted: many users are the only member of their group.
    const mode_t others = ::geteuid() == 0 ? S_IWGRP | S_IWOTH : S_IWOTH;
    if (ours && (directory.st_mode & others) == 0)
      return true;
    const bool sticky = (directory.st_mode & S_ISVTX) != 0;
    if (ours && sticky && (entry == nullptr || is_trusted(entry->st_uid)))
      return true;
    return stop(EPERM, path,
                "others could replace " + in_backticks(name) + ": " + in_backticks(m_here) +
                    (ours ? " has mode " + format_mode(directory.st_mode & 07777)
                          : " belongs to uid " + std::to_string(directory.st_uid)));
  }

  bool follow(const std::string& text, const struct stat& status, const std::string& path) {
    if (++m_links > k_most_links)
      return stop(ELOOP, path);
    const bool in_home = !m_beneath.empty() && is_under(path, m_beneath) && path != m_beneath;
    if (m_rule.links == Links::none || in_home)
      return stop(EPERM, path, in_backticks(path) + " is a symbolic link");
    if (m_rule.links == Links::trusted && !is_trusted(status.st_uid))
      return stop(EPERM, path, in_backticks(path) + " is a symbolic link of uid " + std::to_string(status.st_uid));
    push(text);
    const bool is_absolute = text.starts_with('/'), leads_here = m_pending.empty();
    if (leads_here && !is_absolute) // the walk has passed the directory above it, which is wanted, too
      push(m_here);
    return (!leads_here && !is_absolute) || restart();
  }

  Walked finish() {
    m_walked.parent_missing = !m_pending.empty();
    m_walked.resolved = with_rest(m_here);
    if (m_walked.ancestor.empty()) { // the path is the root itself
      m_walked.directory.reset(::openat(m_walked.fd.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
      m_walked.ancestor = "/";
    }
    return std::move(m_walked);
  }

  int m_root;
  const WalkRule& m_rule;
  std::string m_beneath;
  std::vector<std::string> m_pending; ///< components that are not walked yet, in reverse order
  std::string m_here;                 ///< real path of Walked::fd
  Walked m_walked;
  std::optional<WalkError> m_error;
  int m_links = 0;
};

} // namespace

Error WalkError::error() const {
  if (reason.empty())
    return errno_error(error_number, path);
  if (error_number == ESTALE)
    return {ErrorCode::conflict, path + ": " + reason, "run `sharefs status`", {}};
  return {ErrorCode::permission, path + ": " + reason, "give the real path, or let root own it and what holds it", {}};
}

std::string Walked::text() const {
  if (!exists())
    return "nothing";
  if (is_link())
    return "a link to " + in_backticks(link);
  return is_directory() ? "a directory" : S_ISREG(status.st_mode) ? "a file" : "a special file";
}

tl::expected<Walked, WalkError> walk(int root, std::string_view path, const WalkRule& rule) {
  // ESTALE: another host has replaced what this host has in its cache, or has just looked up. The error makes the
  // kernel drop it from the cache, and the kernel's own path walks are also repeated. A link that is replaced all the
  // time can be lost between LOOKUP and READLINK of several walks.
  constexpr int k_most_walks = 16;
  if (root < 0)
    return tl::unexpected(WalkError{.error_number = errno, .path = std::string(path), .reason = {}, .resolved = {}});
  auto walked = Walk(root, path, rule).run();
  for (int walks = 1;
       walks < k_most_walks && !walked && walked.error().error_number == ESTALE && walked.error().reason.empty();
       ++walks)
    walked = Walk(root, path, rule).run();
  return walked;
}

Result<Walked> walk_from(const std::string& root, std::string_view path, const WalkRule& rule) {
  const Fd top(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top)
    return fail(errno_error(errno, root));
  return walk(top.get(), path, rule).map_error([](const WalkError& error) { return error.error(); });
}

bool ask_attributes(const std::function<bool()>& ask) {
  constexpr int k_most_asks = 8;
  bool answered = ask();
  for (int asks = 1; asks < k_most_asks && !answered && (errno == EACCES || errno == EREMOTEIO); ++asks)
    answered = ask();
  return answered;
}

bool stat_open(int fd, struct stat& status) {
  return ask_attributes([&] { return ::fstat(fd, &status) == 0; });
}

Fd open_below(int parent, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  // On the server itself a client may have a delegation of a file, which is a lease. With O_NONBLOCK open(2) recalls it
  // and does not wait. A client that does not answer loses the delegation after lease-break-time, 45 s (proc(5)). An
  // owner can hold delegations of many files, so the waiting time for those that are not returned is limited for the
  // whole process.
  constexpr std::chrono::milliseconds k_pause{5};
  constexpr int k_most_waits = 12'000; // one minute
  static std::atomic<int> left{k_most_waits};
  for (int waits = 0;; ++waits) {
    Fd fd(static_cast<int>(::syscall(SYS_openat2, parent, path, &how, sizeof how)));
    if (fd)
      left += waits;
    if (fd || errno != EWOULDBLOCK || left.fetch_sub(1) <= 0)
      return fd;
    std::this_thread::sleep_for(k_pause); // NOLINT: the kernel does not report when a delegation is returned
  }
}

int for_each_name(Fd fd, const std::function<int(int directory, const dirent& entry)>& visit) {
  const auto close_directory = [](DIR* directory) { ::closedir(directory); };
  const std::unique_ptr<DIR, decltype(close_directory)> directory(fd ? ::fdopendir(fd.get()) : nullptr,
                                                                  close_directory);
  if (!directory)
    return errno;
  [[maybe_unused]] const int owned_by_directory = fd.release();
  for (errno = 0; const dirent* one = ::readdir(directory.get()); errno = 0)
    if (const std::string_view name = one->d_name; name != "." && name != "..")
      if (const int stopped = visit(::dirfd(directory.get()), *one); stopped != 0)
        return stopped;
  return errno;
}

int list_names(Fd fd, std::vector<std::string>& into) {
  return for_each_name(std::move(fd), [&into](int, const dirent& entry) {
    into.emplace_back(entry.d_name);
    return 0;
  });
}

} // namespace sharefs::sys
