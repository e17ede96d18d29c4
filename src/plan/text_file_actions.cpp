// File: whole files under /etc, /run and /var/lib, by sys::Files.
#include "base/argv.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "plan/perform.hpp"

#include <cerrno>
#include <csignal>
#include <fmt/format.h>

namespace sharefs::plan {

namespace {

std::string size_of(const std::optional<std::string>& content) {
  return content ? "the content of " + format_bytes(content->size()) + " that the plan was made for" : "no file";
}

std::string found_text(const sys::Entry& entry, const std::optional<std::string>& content) {
  if (!entry.exists())
    return "no file";
  if (entry.kind == sys::EntryKind::symlink)
    return "a symbolic link";
  return content ? "other content, " + format_bytes(content->size()) : "something else";
}

/// Finds temporary files that a killed process has left beside the real file, and that would stay for ever.
/// Files::write names them `.NAME.sharefs-PID` (or `.PID.N`).
std::vector<std::string> find_leftovers(const sys::Files& files, const std::string& path) {
  const auto directory = parent_path(path);
  const auto names = files.list(directory);
  const auto stem = "." + base_name(path) + ".sharefs-";
  std::vector<std::string> found;
  for (const auto& name : names.value_or(std::vector<std::string>{})) {
    if (!name.starts_with(stem))
      continue;
    const auto rest = name.substr(stem.size());
    const auto pid = parse_number<pid_t>(rest.substr(0, rest.find('.'))).value_or(0);
    if (pid > 0 && (pid == ::getpid() || (::kill(pid, 0) != 0 && errno == ESRCH)))
      found.push_back(join_path(directory, name));
  }
  return found;
}

Result<void> remove_if_there(const sys::Files& files, const std::string& path) {
  auto removed = files.remove(path);
  return !removed && removed.error().code == ErrorCode::not_found ? Result<void>{} : removed;
}

/// Writes or removes the file `real`. The error of a rename does not say why even root may not replace a file.
Result<void> replace(const File& action, const sys::Files& files, const std::string& real) {
  auto done = action.after ? files.write_if(action.path, action.before, *action.after, action.mode)
                           : remove_if_there(files, action.path);
  if (done || !done.error().hint.empty())
    return done;
  const auto path = shell_quote(files.real_path(real)), directory = shell_quote(files.real_path(parent_path(real)));
  if (done.error().message.ends_with(errno_text(EPERM)) && ::geteuid() == 0)
    done.error().hint = fmt::format("`lsattr -d {0} {1}` shows the flags i and a, which `chattr -ia {0} {1}` clears; "
                                    "then run the command again",
                                    path, directory);
  if (done.error().code == ErrorCode::busy)
    done.error().hint =
        fmt::format("it may be a mount point of its own: `umount {}`, then run the command again", path);
  return done;
}

/// Returns the mode of a file that is to be removed; nullopt if there is none. A link is a conflict: the file that it
/// leads to is not the file of the plan.
Result<std::optional<Access>> find_removed(const File& action, const sys::Files& files) {
  const auto entry = files.entry({action.path});
  if (entry.kind == sys::EntryKind::unknown)
    return fail(entry.error());
  if (!entry.exists())
    return std::nullopt;
  if (entry.kind != sys::EntryKind::file)
    return conflict(action.path, size_of(action.before), found_text(entry, std::nullopt));
  return Access{0, 0, entry.mode, ""};
}

} // namespace

Result<Acted> act(const File& action, const sys::Files& files, Phase phase) {
  TRY_ASSIGN(auto removed, action.after ? std::nullopt : find_removed(action, files));
  TRY_ASSIGN(const auto current, files.read_if_exists(action.path));
  const bool already = current == action.after;
  if (!already && current != action.before)
    return conflict(action.path, size_of(action.before), found_text(files.entry({action.path}), current));
  const auto entry = files.entry({.path = action.path, .follow = true, .links = sys::Links::trusted});
  const auto& real = entry.kind == sys::EntryKind::unknown ? action.path : entry.resolved;
  const auto left = find_leftovers(files, real);
  if (phase == Phase::check)
    return Acted{already && left.empty() ? Outcome::unchanged : Outcome::done, std::move(removed)};
  for (const auto& leftover : left)
    TRY(remove_if_there(files, leftover));
  if (already)
    return Outcome::unchanged;
  TRY(replace(action, files, real));
  if (entry.links > 1)
    return Acted{Outcome::done, {}, action.path + " had another hard link, which keeps the content of before"};
  return Outcome::done;
}

} // namespace sharefs::plan
