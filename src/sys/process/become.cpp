#include "sys/process/become.hpp"

#include "sys/process/rights.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <grp.h>
#include <linux/keyctl.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sharefs::sys {
namespace {

/// Environment variables of the caller that are passed to programs of another user. None of them holds a secret or
/// names the place of a program or a library. A row that ends in `_` is a prefix of names.
constexpr std::array<std::string_view, 11> k_kept{
    "TERM",  "COLORTERM", "LANG",           "LANGUAGE",         "LC_", "TZ", "COLUMNS",
    "LINES", "NO_COLOR",  "CLICOLOR_FORCE", "SOURCE_DATE_EPOCH"};
/// Proxies and package indexes. They are passed on only if the value contains no password (`user:word@host`).
constexpr std::array<std::string_view, 11> k_kept_without_password{
    "http_proxy",  "https_proxy", "ftp_proxy", "all_proxy",     "no_proxy",           "HTTP_PROXY",
    "HTTPS_PROXY", "ALL_PROXY",   "NO_PROXY",  "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"};

bool is_kept(std::string_view name, std::string_view value) {
  const auto is_it = [name](std::string_view row) { return row.ends_with('_') ? name.starts_with(row) : name == row; };
  return std::ranges::any_of(k_kept, is_it) ||
         (value.find('@') == std::string_view::npos && std::ranges::any_of(k_kept_without_password, is_it));
}

} // namespace

int become(const User& as, unsigned kept) {
  // A process that already has these ids needs no privilege: tests and `sharefs run` work for ordinary users. A user
  // who is not root keeps the present groups, because setgroups(2) and setgid(2) refuse others, such as the group that
  // a directory has only from the set-group-id bit of its parent.
  if (as.uid == ::geteuid() && (as.gid == ::getegid() || as.uid != 0))
    return 0;
  int with_parent = 0; // setresuid(2) clears the signal by which this process ends with its parent
  ::prctl(PR_GET_PDEATHSIG, &with_parent);
  const pid_t parent = ::getppid();
  // The child leaves root's session keyring, which may hold Kerberos keys, for example. An error is ignored: a kernel
  // without keyrings has no keys to protect.
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  if (kept != 0 && ::prctl(PR_SET_KEEPCAPS, 1) != 0)
    return errno;
  if (::setgroups(as.groups.size(), as.groups.data()) != 0 || ::setresgid(as.gid, as.gid, as.gid) != 0 ||
      ::setresuid(as.uid, as.uid, as.uid) != 0)
    return errno;
  // If fs.suid_dumpable is 1, a change of ids alone does not stop other processes from tracing this one.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0)
    return errno;
  if (const int error = set_capabilities(kept); error != 0)
    return error;
  ::prctl(PR_SET_PDEATHSIG, with_parent);
  if (with_parent != 0 && ::getppid() != parent)
    return ESRCH;
  constexpr auto k_keep = static_cast<uid_t>(-1);
  return as.uid != 0 && ::setresuid(k_keep, 0, k_keep) == 0 ? EPERM : 0;
}

std::vector<std::string> environment_of(const User& user) {
  std::vector<std::string> result{std::string("PATH=") + k_system_path, "HOME=" + user.home, "USER=" + user.name,
                                  "LOGNAME=" + user.name,
                                  "SHELL=" + (user.shell.empty() ? std::string("/bin/sh") : user.shell)};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos && is_kept(text.substr(0, equals), text.substr(equals + 1)))
      result.emplace_back(text);
  }
  return result;
}

} // namespace sharefs::sys
