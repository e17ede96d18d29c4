// Facts about many paths from one child: it writes one frame per path, so that the number of whole frames tells which
// path it hangs on.
#include "base/text.hpp"
#include "sys/fs/path_probe.hpp"
#include "sys/process/child.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <dirent.h>
#include <memory>
#include <sys/stat.h>

namespace sharefs::sys {
namespace {

// ---- in the child ----

PathKind kind_of(mode_t mode) {
  if (S_ISREG(mode))
    return PathKind::file;
  if (S_ISDIR(mode))
    return PathKind::directory;
  if (S_ISLNK(mode))
    return PathKind::symlink;
  return PathKind::other;
}

/// 0 or errno.
int list_directory(int fd, std::vector<std::string>& names) {
  const auto close_directory = [](DIR* directory) { ::closedir(directory); };
  const std::unique_ptr<DIR, decltype(close_directory)> directory(::fdopendir(fd), close_directory);
  if (!directory)
    return errno;
  for (errno = 0; const dirent* entry = ::readdir(directory.get()); errno = 0)
    if (const std::string name = entry->d_name; name != "." && name != "..")
      names.push_back(name);
  const int error = errno;
  std::sort(names.begin(), names.end());
  return error;
}

int read_content(int fd, std::size_t limit, std::string& content) {
  struct stat info{};
  if (::fstat(fd, &info) != 0)
    return errno;
  if (!S_ISREG(info.st_mode))
    return EINVAL; // exchanged since it was looked at
  std::array<char, 65536> buffer{};
  while (content.size() < limit) {
    const ssize_t count = ::read(fd, buffer.data(), std::min(buffer.size(), limit - content.size()));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    if (count == 0)
      break;
    content.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return 0;
}

PathFact look_at(const PathQuery& query) {
  PathFact fact;
  fact.path = query.path;
  struct stat info{};
  if (::fstatat(AT_FDCWD, query.path.c_str(), &info, query.follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) {
    fact.error_number = errno;
    fact.kind = errno == ENOENT || errno == ENOTDIR ? PathKind::missing : PathKind::unknown;
    return fact;
  }
  fact.kind = kind_of(info.st_mode);
  fact.mode = info.st_mode & 07777;
  fact.uid = info.st_uid;
  fact.gid = info.st_gid;
  fact.size = static_cast<std::uint64_t>(info.st_size);
  fact.device = info.st_dev;
  fact.inode = info.st_ino;
  fact.links = info.st_nlink;
  fact.mtime = info.st_mtim.tv_sec;
  // A link that was planted after the look must not be followed either.
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (query.follow ? 0 : O_NOFOLLOW);
  if (fact.kind == PathKind::symlink) {
    std::array<char, 4096> target{};
    const ssize_t size = ::readlink(query.path.c_str(), target.data(), target.size());
    if (size < 0)
      fact.error_number = errno;
    else
      fact.link_target.assign(target.data(), static_cast<std::size_t>(size));
  } else if (fact.kind == PathKind::directory && query.list) {
    const int fd = ::open(query.path.c_str(), flags | O_DIRECTORY);
    fact.error_number = fd < 0 ? errno : list_directory(fd, fact.entries);
  } else if (fact.kind == PathKind::file && query.read_bytes > 0) {
    const Fd fd(::open(query.path.c_str(), flags));
    fact.error_number = fd ? read_content(fd.get(), query.read_bytes, fact.content) : errno;
  }
  return fact;
}

std::string frame(const PathFact& fact) {
  WireWriter writer;
  writer.put(fact.kind).put(fact.error_number).put(fact.link_target).put(fact.mode).put(fact.uid).put(fact.gid);
  writer.put(fact.size).put(fact.device).put(fact.inode).put(fact.links).put(fact.mtime).put(fact.content);
  writer.put(fact.entries.size());
  for (const std::string& name : fact.entries)
    writer.put(name);
  return writer.framed();
}

// ---- in the parent ----

PathFact fact_from(std::string_view bytes, const std::string& path) {
  WireReader reader(bytes);
  PathFact fact;
  fact.path = path;
  fact.kind = reader.get<PathKind>();
  fact.error_number = reader.get<int>();
  fact.link_target = reader.text();
  fact.mode = reader.get<std::uint32_t>();
  fact.uid = reader.get<std::uint32_t>();
  fact.gid = reader.get<std::uint32_t>();
  fact.size = reader.get<std::uint64_t>();
  fact.device = reader.get<std::uint64_t>();
  fact.inode = reader.get<std::uint64_t>();
  fact.links = reader.get<std::uint64_t>();
  fact.mtime = reader.get<std::int64_t>();
  fact.content = reader.text();
  for (auto count = reader.get<std::size_t>(); count > 0 && reader.ok(); --count)
    fact.entries.emplace_back(reader.text());
  return fact;
}

} // namespace

const char* to_string(PathKind kind) {
  switch (kind) {
  case PathKind::missing:
    return "missing";
  case PathKind::file:
    return "file";
  case PathKind::directory:
    return "directory";
  case PathKind::symlink:
    return "symlink";
  case PathKind::other:
    return "other";
  case PathKind::unknown:
    return "unknown";
  }
  return "unknown";
}

Result<std::vector<PathFact>> inspect_paths(const InspectRequest& request) {
  std::vector<PathFact> facts;
  if (request.queries.empty())
    return facts;
  const Deadline deadline = deadline_in(request.deadline);
  auto child = WorkingChild::start(request.as, [&request](int fd) {
    for (const PathQuery& query : request.queries)
      if (!write_all(fd, frame(look_at(query))))
        return;
  });
  if (!child)
    return fail(child.error());
  const bool complete = child->drain_until(deadline);
  if (!complete)
    child->process().kill();
  const auto ended = child->finish();
  for (WireReader reader(child->result()); facts.size() < request.queries.size();) {
    const std::string_view bytes = reader.text();
    if (!reader.ok())
      break;
    facts.push_back(fact_from(bytes, request.queries[facts.size()].path));
  }
  if (facts.size() == request.queries.size())
    return facts;
  const std::string& culprit = request.queries[facts.size()].path;
  if (!complete)
    return fail(ErrorCode::timeout,
                culprit + ": no answer within " + format_duration(request.deadline / std::chrono::microseconds(1)),
                "`sharefs status` tells which mount hangs");
  return fail(ended ? Error{ErrorCode::failed, culprit + ": cannot be inspected", {}, {}} : ended.error());
}

} // namespace sharefs::sys
