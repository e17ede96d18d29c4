#include "sys/fs/files.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/process/waiting_children.hpp"

#include <cerrno>

namespace sharefs::sys {
namespace {

/// Returns the content of an entry. It must have been read with one byte more than `limit`, to notice a larger file.
Result<std::string> content_of(Entry entry, std::size_t limit) {
  if (entry.kind == EntryKind::directory)
    return fail(ErrorCode::failed, entry.path + ": is a directory");
  if (entry.error_number != 0)
    return fail(entry.error());
  if (entry.kind != EntryKind::file)
    return fail(ErrorCode::failed, entry.path + ": is not a regular file");
  if (entry.content.size() > limit)
    return fail(ErrorCode::failed, entry.path + ": is larger than " + std::to_string(limit) + " bytes");
  return std::move(entry.content);
}

} // namespace

Files::Files(const std::string& root, std::chrono::milliseconds deadline)
    : m_root(normalize_path(root)), m_deadline(deadline), m_mounts(std::make_shared<MountWatch>()),
      m_children(std::make_shared<WaitingChildren>()) {}

bool Files::root_may_hang() const {
  const auto table = mounts();
  if (!table)
    return true;
  const MountEntry* owner = table->owner_of(m_root);
  return owner == nullptr ? table->hanging().contains("/") : may_hang(owner->fs_type);
}

MountTargets Files::hanging_in(const MountTable& mounts) const {
  if (is_live())
    return mounts.hanging();
  MountTargets inside;
  for (const std::string& target : mounts.hanging())
    if (target != m_root && is_under(target, m_root))
      inside.insert(target.substr(m_root.size()));
  return inside;
}

Fd Files::open_root() const {
  return Fd(::open(m_root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Entry Files::entry(const EntryQuery& query) const {
  return read_entries(*this, mounts().value_or(MountTable()), {{query}, m_deadline}).front();
}

Result<std::string> Files::read(const std::string& path, std::size_t limit) const {
  return content_of(entry({.path = path, .follow = true, .read_bytes = limit + 1}), limit);
}

Result<std::optional<std::string>> Files::read_if_exists(const std::string& path, std::size_t limit) const {
  auto found = entry({.path = path, .follow = true, .read_bytes = limit + 1});
  if (found.kind == EntryKind::missing)
    return std::nullopt;
  return content_of(std::move(found), limit);
}

Result<std::string> Files::read_trusted(const std::string& path, std::size_t limit) const {
  auto found = entry({.path = path, .follow = true, .read_bytes = limit + 1, .links = Links::trusted, .guarded = true});
  const auto me = ::geteuid();
  const unsigned others = me == 0 ? 022 : 002; // the group may write for a user, who often is its only member
  const auto name = shell_quote(found.resolved);
  if (found.error_number == EPERM && !found.detail.empty())
    return fail(
        ErrorCode::permission, found.error().message,
        "`namei -l " + shell_quote(path) +
            "` shows who may write there: run `chmod go-w` on that directory, or keep the file in one of root's");
  const bool is_file = found.kind == EntryKind::file; // only files are read, so only their rights are checked
  if (is_file && found.uid != 0 && found.uid != me)
    return fail(ErrorCode::permission,
                path + ": belongs to uid " + std::to_string(found.uid) + ", who could make " +
                    (me == 0 ? "root" : "you") + " do anything",
                "read it, then run `chown " + std::to_string(me) + " " + name + "`");
  if (is_file && (found.mode & others) != 0)
    return fail(ErrorCode::permission, path + ": can be changed by others (mode " + format_mode(found.mode) + ")",
                std::string("read it, then run `chmod ") + (me == 0 ? "go-w " : "o-w ") + name + "`");
  return content_of(std::move(found), limit);
}

Result<std::vector<std::string>> Files::list(const std::string& path) const {
  auto found = entry({.path = path, .follow = true, .list = true});
  if (found.error_number == 0 && found.kind != EntryKind::directory)
    found.error_number = ENOTDIR;
  if (found.error_number != 0)
    return fail(found.error());
  return std::move(found.names);
}

} // namespace sharefs::sys
