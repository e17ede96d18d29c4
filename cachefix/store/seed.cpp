#include "cachefix/store/cache_store.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/process/call.hpp"
#include "sys/process/fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sharefs::cachefix {
namespace {

namespace fs = std::filesystem;

/// True if a file belongs to the cache: locks and the leftovers of failed launches do not. Error `permission` if it
/// belongs to another user, root aside.
Result<bool> is_of_cache(const std::string& path, const struct stat& status) {
  const std::string name = base_name(path);
  if (name.ends_with(".lock") || name.ends_with(".incomplete") || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
    return false;
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return fail(ErrorCode::permission, fmt::format("{}: belongs to uid {}", path, status.st_uid));
  return true;
}

} // namespace

Result<std::uint64_t> size_of_cache(const std::string& shared, std::chrono::milliseconds deadline) {
  return sys::call(std::nullopt, deadline, [&]() -> Result<std::uint64_t> {
    std::uint64_t bytes = 0;
    std::error_code error, ignored;
    for (fs::recursive_directory_iterator it(shared, error), end; !error && it != end; it.increment(error))
      if (it->is_regular_file(ignored) && !it->is_symlink(ignored))
        bytes += it->file_size(ignored);
    return bytes;
  });
}

Result<tree::CopyReport> seed_cache(const std::string& shared, const std::string& local, std::uint64_t keep_free_bytes,
                                    std::chrono::milliseconds deadline) {
  std::error_code error;
  if (!fs::is_empty(local, error) || error)
    return tree::CopyReport{};
  tree::Options options;
  options.deadline = deadline;
  const auto measured = tree::measure({.path = shared}, options);
  if (!measured)
    return measured.error().code == ErrorCode::not_found ? Result<tree::CopyReport>() : fail(measured.error());
  if (const auto space = fs::space(local, error); error || space.available < measured->allocated + keep_free_bytes)
    return fail(ErrorCode::failed, format_bytes(measured->allocated) + " do not fit on this node");
  const std::string scratch = parent_path(local) + "/.sharefs-seed-" + base_name(local);
  fs::create_directory(scratch, error);
  options.content_only = options.remove_others = true; // an earlier copy may have been interrupted
  options.admit = is_of_cache;
  auto copied = tree::copy({.path = shared}, {.path = scratch}, options);
  if (!copied && copied.error().code == ErrorCode::busy) { // another process of this job copies: wait for it
    const sys::Fd other(::open(scratch.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    (void)::flock(other.get(), LOCK_EX);
    return tree::CopyReport{};
  }
  if (!copied || ::rename(scratch.c_str(), local.c_str()) != 0) {
    const int number = errno;
    fs::remove_all(scratch, error);
    if (!copied)
      return fail(copied.error());
    if (number != ENOTEMPTY && number != EEXIST) // else a program of this job has files there already
      return fail(errno_error(number, local));
    return tree::CopyReport{};
  }
  return copied;
}

} // namespace sharefs::cachefix
