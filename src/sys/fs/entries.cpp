#include "sys/fs/entry.hpp"

#include <cerrno>

namespace sharefs::sys {

const char* to_string(EntryKind kind) {
  switch (kind) {
  case EntryKind::missing:
    return "missing";
  case EntryKind::file:
    return "file";
  case EntryKind::directory:
    return "directory";
  case EntryKind::symlink:
    return "symlink";
  case EntryKind::other:
    return "other";
  case EntryKind::unknown:
    break;
  }
  return "unknown";
}

bool Entry::hung() const {
  return error_number == ETIMEDOUT;
}

Error Entry::error() const {
  return errno_error(error_number, path);
}

std::vector<Entry> read_entries(const Files&, const MountTable&, const EntryRequest& request) {
  std::vector<Entry> entries;
  for (const EntryQuery& query : request.queries) {
    entries.emplace_back().path = query.path;
    entries.back().error_number = ENOSYS;
  }
  return entries;
}

} // namespace sharefs::sys
