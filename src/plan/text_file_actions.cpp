// WriteFile and RemoveFile: whole files under /etc, /run and /var/lib, by sys::Files.
#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/perform.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>

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

/// Files::write names its temporary file `.NAME.sharefs-PID` (or `.PID.N`). One of a process that was killed in the
/// middle of writing would stay for ever.
std::vector<std::string> leftovers(const sys::Files& files, const std::string& path) {
  const auto directory = parent_path(path);
  const auto names = files.list(directory);
  const auto stem = "." + base_name(path) + ".sharefs-";
  std::vector<std::string> found;
  for (const auto& name : names.value_or(std::vector<std::string>{})) {
    if (!name.starts_with(stem))
      continue;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data() + stem.size(), name.data() + name.size(), pid);
    const bool is_ours = error == std::errc{} && (end == name.data() + name.size() || *end == '.') && pid > 0;
    if (is_ours && (pid == ::getpid() || (::kill(pid, 0) != 0 && errno == ESRCH)))
      found.push_back(join_path(directory, name));
  }
  return found;
}

Result<void> remove_if_there(const sys::Files& files, const std::string& path) {
  auto removed = files.remove(path);
  return !removed && removed.error().code == ErrorCode::not_found ? Result<void>{} : removed;
}

/// The rest of an action whose file was judged: its work, after what earlier runs have left beside the file is gone.
template <class Work>
Result<Outcome> finish(const sys::Files& files, const std::string& path, bool already, Phase phase, const Work& work) {
  if (phase == Phase::look)
    return already && leftovers(files, path).empty() ? Outcome::unchanged : Outcome::done;
  for (const auto& leftover : leftovers(files, path))
    if (auto removed = remove_if_there(files, leftover); !removed)
      return fail(removed.error());
  if (already)
    return Outcome::unchanged;
  return work().map([] { return Outcome::done; });
}

} // namespace

Result<Outcome> act(WriteFile& action, const sys::Files& files, Phase phase) {
  const auto current = files.read_if_exists(action.path);
  if (!current)
    return fail(current.error());
  const bool already = *current == action.after;
  if (!already && *current != action.before)
    return conflict(action.path, size_of(action.before), found_text(files.entry({action.path}), *current));
  return finish(files, action.path, already, phase,
                [&] { return files.write_if(action.path, action.before, action.after, action.mode); });
}

Result<Outcome> act(RemoveFile& action, const sys::Files& files, Phase phase) {
  const auto entry = files.entry({action.path});
  if (entry.kind == sys::EntryKind::unknown)
    return fail(entry.error());
  const bool already = !entry.exists();
  if (!already) {
    std::optional<std::string> content;
    if (entry.kind == sys::EntryKind::file) {
      auto read = files.read_if_exists(action.path);
      if (!read)
        return fail(read.error());
      content = std::move(*read);
    }
    if (content != action.before)
      return conflict(action.path, size_of(action.before), found_text(entry, content));
    if (phase == Phase::look)
      action.mode = entry.mode;
  }
  return finish(files, action.path, already, phase, [&] { return remove_if_there(files, action.path); });
}

} // namespace sharefs::plan
