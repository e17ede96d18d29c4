#include "sys/fs/resolve.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace sharefs::sys {
namespace {

constexpr int k_most_links = 40; // as the kernel's MAXSYMLINKS

/// Components of `path` in reverse order, ready to be popped from the back.
std::vector<std::string> reversed_components(std::string_view path) {
  std::vector<std::string> parts = split(path, '/');
  std::erase_if(parts, [](const std::string& part) { return part.empty() || part == "."; });
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::string child_of(const std::string& directory, const std::string& name) {
  return directory == "/" ? "/" + name : directory + "/" + name;
}

/// `here` and what is still to come, lexically.
std::string with_rest(std::string here, const std::vector<std::string>& pending) {
  for (auto part = pending.rbegin(); part != pending.rend(); ++part)
    here = child_of(here, *part);
  return normalize_path(here);
}

} // namespace

Resolver::Resolver(const MountTable& mounts, Local local, Remote remote)
    : m_mounts(mounts), m_local(std::move(local)), m_remote(std::move(remote)) {
  for (const MountEntry& mount : mounts.entries()) {
    m_any_shared = m_any_shared || is_shared_fs_type(mount.fs_type);
    if (may_hang(mount.fs_type))
      m_may_hang.insert(mount.target);
  }
}

/// A hidden mount counts too: looking in process at a path is worth no risk.
bool Resolver::look_may_hang(std::string_view path) const {
  if (m_may_hang.empty())
    return false;
  if (m_may_hang.contains("/"))
    return true;
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if (m_may_hang.contains(path.substr(0, end)))
      return true;
    if (end == std::string_view::npos)
      return false;
  }
}

const Seen& Resolver::look(const std::string& path, const std::vector<std::string>& ahead) {
  if (const auto known = m_seen.find(path); known != m_seen.end())
    return known->second;
  if (!look_may_hang(path))
    return m_seen.emplace(path, m_local(path)).first->second;
  // One question for this component and those that probably follow: a child process for each would be slow.
  std::vector<std::string> questions{path};
  for (auto part = ahead.rbegin(); part != ahead.rend() && *part != ".."; ++part)
    questions.push_back(child_of(questions.back(), *part));
  const std::vector<Seen> answers = m_remote(questions);
  for (std::size_t i = 0; i < questions.size(); ++i)
    m_seen.emplace(questions[i], i < answers.size() ? answers[i] : Seen{});
  return m_seen.at(path);
}

Place Resolver::resolve(std::string_view path) {
  Place place;
  place.path = normalize_path(path);
  place.kind = PathKind::directory;
  std::string here = "/";
  std::vector<std::string> pending = reversed_components(path);
  int links = 0;
  while (!pending.empty() && (m_insist || any_shared())) {
    const std::string part = std::move(pending.back());
    pending.pop_back();
    if (part == "..") {
      here = parent_path(here);
      continue;
    }
    const std::string next = child_of(here, part);
    if (place.kind == PathKind::missing) {
      here = next;
      continue;
    }
    const MountEntry* owner = look_may_hang(next) ? m_mounts.owner_of(next) : nullptr;
    const bool shared = owner != nullptr && is_shared_fs_type(owner->fs_type);
    // Looking below an automount point would mount it; what it mounts is shared in all but rare cases.
    if (shared && owner->fs_type == "autofs") {
      here = with_rest(next, pending);
      place.kind = PathKind::unknown;
      pending.clear();
      break;
    }
    // A mount point is a directory; its own lstat would go to the server for nothing.
    const Seen seen = owner != nullptr && owner->target == next ? Seen{PathKind::directory, {}} : look(next, pending);
    if (seen.kind == PathKind::symlink) {
      if (++links > k_most_links) {
        place.doubt = "too many levels of symbolic links";
        place.shared = true;
        return place;
      }
      for (std::string& target : reversed_components(seen.link_target))
        pending.push_back(std::move(target));
      if (seen.link_target.starts_with('/'))
        here = "/";
      continue;
    }
    if (seen.kind == PathKind::unknown && shared) {
      place.doubt = "the links below " + owner->target + " could not be followed";
      here = with_rest(next, pending);
      place.kind = PathKind::unknown;
      pending.clear();
      break;
    }
    place.kind = seen.kind;
    here = next;
  }
  place.resolved = pending.empty() ? here : with_rest(here, pending);
  if (const MountEntry* owner = m_mounts.owner_of(place.resolved)) {
    place.mount = owner->target;
    place.fs_type = owner->fs_type;
    place.shared = is_shared_fs_type(owner->fs_type);
  }
  return place;
}

Seen look_at_local(const Files& files, const std::string& path) {
  // An own lstat and not Files::info: start-up time of `run` counts, and most calls are for "/" itself as the root.
  const std::string real = files.is_live() ? path : files.root() + path;
  struct stat status{};
  if (lstat(real.c_str(), &status) != 0)
    return {errno == ENOENT || errno == ENOTDIR ? PathKind::missing : PathKind::unknown, {}};
  if (S_ISDIR(status.st_mode))
    return {PathKind::directory, {}};
  if (!S_ISLNK(status.st_mode))
    return {S_ISREG(status.st_mode) ? PathKind::file : PathKind::other, {}};
  std::string target(static_cast<std::size_t>(4096), '\0');
  const ssize_t length = readlink(real.c_str(), target.data(), target.size());
  if (length < 0)
    return {PathKind::unknown, {}};
  target.resize(static_cast<std::size_t>(length));
  return {PathKind::symlink, target};
}

Resolver make_resolver(System& system, const MountTable& mounts, std::chrono::milliseconds deadline) {
  auto dead = std::make_shared<std::set<std::string>>(); // mounts that did not answer
  return Resolver(
      mounts, [&system](const std::string& path) { return look_at_local(system.files(), path); },
      [&system, &mounts, deadline, dead](const std::vector<std::string>& paths) {
        std::vector<Seen> answers(paths.size());
        const MountEntry* owner = paths.empty() ? nullptr : mounts.owner_of(paths.front());
        const std::string target = owner == nullptr ? "" : owner->target;
        if (dead->contains(target))
          return answers;
        InspectRequest request;
        request.deadline = deadline;
        for (const std::string& path : paths) {
          PathQuery query;
          query.path = path;
          request.queries.push_back(std::move(query));
        }
        const auto facts = system.inspect(request);
        if (!facts) {
          dead->insert(target);
          return answers;
        }
        for (std::size_t i = 0; i < answers.size() && i < facts->size(); ++i)
          answers[i] = {(*facts)[i].kind, (*facts)[i].link_target};
        return answers;
      });
}

} // namespace sharefs::sys
