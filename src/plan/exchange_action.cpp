// ExchangeForLink.
#include "plan/perform.hpp"

#include "base/try.hpp"

#include <cerrno>
#include <cstdio>

namespace sharefs::plan {

namespace {

/// The two names of the action, each in an open directory: `path` and the name under which the directory is kept.
class Exchange {
 public:
  Exchange(const ExchangeForLink& action, const sys::Walked& path, const sys::Walked& kept)
      : m_action(action), m_path(path), m_kept(kept) {}

  [[nodiscard]] bool is_exchanged() const { return is_link(m_path) && is_directory(m_kept); }
  [[nodiscard]] bool is_as_before() const { return is_directory(m_path) && !m_kept.exists(); }
  /// True if an earlier run was killed between two system calls: the link has the kept name, or the directory is
  /// renamed and there is no link yet.
  [[nodiscard]] bool was_cut_off() const {
    return (is_directory(m_path) && is_link(m_kept)) || (!m_path.exists() && is_directory(m_kept));
  }

  Result<Outcome> exchange_for_link() {
    if (is_directory(m_path)) {
      if (!is_link(m_kept) && ::symlinkat(m_action.target.c_str(), parent_fd(m_kept), m_kept.name.c_str()) != 0)
        return fail(errno_error(errno, m_action.to));
      if (exchange())
        return sync_both();
      if (!is_unsupported(errno))
        return remove_link_and_fail();
      if (::unlinkat(parent_fd(m_kept), m_kept.name.c_str(), 0) != 0 || !rename(m_path, m_kept))
        return remove_link_and_fail();
    }
    if (::symlinkat(m_action.target.c_str(), parent_fd(m_path), m_path.name.c_str()) == 0)
      return sync_both();
    const int error = errno;
    rename(m_kept, m_path); // if this fails as well, the directory stays under its kept name
    return fail(errno_error(error, m_action.path));
  }

  Result<Outcome> put_back() {
    if (is_exchanged()) {
      if (!exchange()) {
        if (!is_unsupported(errno))
          return fail(errno_error(errno, m_action.path));
        if (::unlinkat(parent_fd(m_path), m_path.name.c_str(), 0) != 0 || !rename(m_kept, m_path))
          return fail(errno_error(errno, m_action.path));
        return sync_both();
      }
    } else if (!m_path.exists()) {
      return rename(m_kept, m_path) ? sync_both() : fail(errno_error(errno, m_action.path));
    }
    if (::unlinkat(parent_fd(m_kept), m_kept.name.c_str(), 0) != 0)
      return fail(errno_error(errno, m_action.to));
    return sync_both();
  }

 private:
  static int parent_fd(const sys::Walked& found) { return found.directory.get(); }
  [[nodiscard]] Result<Outcome> sync_both() const {
    TRY(synced(m_kept, m_action.to));
    return synced(m_path, m_action.path);
  }
  [[nodiscard]] bool is_link(const sys::Walked& found) const {
    return found.is_link() && found.link == m_action.target;
  }
  /// True if the planned directory has this name.
  [[nodiscard]] bool is_directory(const sys::Walked& found) const {
    return found.is_directory() && found.status.st_ino == m_action.inode &&
           (m_action.device == 0 || found.status.st_dev == m_action.device);
  }
  static bool is_unsupported(int error) { return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP; }

  [[nodiscard]] bool exchange() const {
    return ::renameat2(parent_fd(m_path), m_path.name.c_str(), parent_fd(m_kept), m_kept.name.c_str(),
                       RENAME_EXCHANGE) == 0;
  }
  static bool rename(const sys::Walked& from, const sys::Walked& to) {
    struct stat status{};
    if (::fstatat(parent_fd(to), to.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      errno = EEXIST;
      return false;
    }
    return ::renameat(parent_fd(from), from.name.c_str(), parent_fd(to), to.name.c_str()) == 0;
  }
  Result<Outcome> remove_link_and_fail() const {
    const int error = errno;
    struct stat status{};
    if (::fstatat(parent_fd(m_kept), m_kept.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode))
      ::unlinkat(parent_fd(m_kept), m_kept.name.c_str(), 0);
    return fail(errno_error(error, m_action.path));
  }

  const ExchangeForLink& m_action;
  const sys::Walked &m_path, &m_kept;
};

} // namespace

Result<Acted> act(const ExchangeForLink& action, const ActorRoot& base, Phase phase) {
  TRY_ASSIGN(const auto path, base.find(action.path));
  TRY_ASSIGN(const auto kept, base.find(action.to));
  Exchange exchange(action, path, kept);
  if (action.reverse ? exchange.is_as_before() : exchange.is_exchanged())
    return Outcome::unchanged;
  const bool can_begin = exchange.was_cut_off() || (action.reverse ? exchange.is_exchanged() : exchange.is_as_before());
  if (!can_begin)
    return conflict(action.path, action.reverse ? "a link to `" + action.target + "`" : "the planned directory",
                    path.text() + ", and " + kept.text() + " at " + action.to);
  if (phase == Phase::check)
    return Outcome::done;
  TRY(check_parent(kept, action.to));
  return action.reverse ? exchange.put_back() : exchange.exchange_for_link();
}

} // namespace sharefs::plan
