#include "sys/fs/file_identity.hpp"

#include <fmt/format.h>

namespace sharefs::sys {

namespace {

std::int64_t change_time(const struct stat& status) {
  return status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec;
}

const char* name_of_kind(mode_t kind) {
  return S_ISREG(kind) ? "a file" : S_ISDIR(kind) ? "a directory" : S_ISLNK(kind) ? "a link" : "a special file";
}

} // namespace

FileIdentity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_uid, status.st_gid, status.st_mode & S_IFMT, change_time(status)};
}

std::string difference(const FileIdentity& expected, const struct stat& found) {
  if (expected.kind != 0 && expected.kind != (found.st_mode & S_IFMT))
    return name_of_kind(found.st_mode);
  if ((expected.inode != 0 && expected.inode != found.st_ino) ||
      (expected.device != 0 && expected.device != found.st_dev))
    return fmt::format("another one, of uid {}", found.st_uid);
  if (expected.uid && *expected.uid != found.st_uid)
    return fmt::format("uid {} instead of {}", found.st_uid, *expected.uid);
  if (expected.gid && *expected.gid != found.st_gid)
    return fmt::format("gid {} instead of {}", found.st_gid, *expected.gid);
  if (expected.changed != 0 && expected.changed != change_time(found))
    return "one that was changed since";
  return {};
}

Error conflict_error(const std::string& path, const std::string& expected, const std::string& found) {
  return {ErrorCode::conflict,
          path + ": expected " + expected + ", found " + found,
          "something else changed it: see what it is, then run the command again",
          {}};
}

} // namespace sharefs::sys
