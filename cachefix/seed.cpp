#include "cachefix/seed.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/process/call.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>

namespace sharefs::cachefix {
namespace {

namespace fs = std::filesystem;

constexpr int k_deepest_dataset = 6; // CACHE/BUILDER/CONFIG/VERSION/HASH, with one level to spare
constexpr std::size_t k_block = 1U << 20U;

bool is_table(const std::string& name) {
  return name.ends_with(".arrow") || name.ends_with(".parquet");
}

/// The files of a complete dataset directory; empty if it is none.
std::vector<std::string> files_of(const fs::path& directory) {
  std::vector<std::string> names;
  bool info = false;
  bool table = false;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!it->is_regular_file(error) || it->is_symlink(error))
      continue;
    info = info || name == "dataset_info.json";
    table = table || is_table(name);
    names.push_back(name);
  }
  if (error || !info || !table || fs::exists(directory.string() + ".incomplete", error))
    return {};
  std::sort(names.begin(), names.end());
  return names;
}

/// Directories that may hold datasets: not models, downloads, hidden and unfinished ones.
bool may_hold_datasets(const std::string& name) {
  return !name.starts_with('.') && !name.starts_with("models--") && !name.ends_with(".incomplete") &&
         name != "downloads" && name != "hub" && name != "modules";
}

void find_datasets(const fs::path& directory, int depth, std::vector<fs::path>& found) {
  if (depth > 0 && !files_of(directory).empty()) {
    found.push_back(directory);
    return;
  }
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; depth < k_deepest_dataset && !error && it != end;
       it.increment(error))
    if (it->is_directory(error) && !it->is_symlink(error) && may_hold_datasets(it->path().filename()))
      find_datasets(it->path(), depth + 1, found);
}

bool same_state(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

Result<std::size_t> read_block(int fd, std::vector<char>& block, const std::string& path) {
  std::size_t filled = 0;
  while (filled < block.size()) {
    const ssize_t count = ::read(fd, block.data() + filled, block.size() - filled);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail(errno_error(errno, path));
    if (count == 0)
      break;
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

/// Copies one file to the disk and reads both again. Bytes.
Result<std::uint64_t> copy_one_file(const std::string& from, const std::string& to) {
  const sys::Fd source(::open(from.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)); // it may be a FIFO by now
  if (!source)
    return fail(errno_error(errno, from));
  const sys::Fd target(::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!target)
    return fail(errno_error(errno, to));
  struct stat before{};
  struct stat after{};
  if (::fstat(source.get(), &before) != 0 || !S_ISREG(before.st_mode))
    return fail(ErrorCode::failed, from + ": is no regular file");
  std::vector<char> block(k_block);
  std::vector<char> copy(k_block);
  std::uint64_t bytes = 0;
  for (;;) {
    const auto count = read_block(source.get(), block, from);
    if (!count)
      return fail(count.error());
    if (*count == 0)
      break;
    if (!sys::write_all(target.get(), {block.data(), *count}))
      return fail(errno_error(errno, to));
    bytes += *count;
  }
  if (::fsync(target.get()) != 0)
    return fail(errno_error(errno, to));
  // From the disk, not from what was just written.
  ::posix_fadvise(target.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (::lseek(source.get(), 0, SEEK_SET) != 0 || ::lseek(target.get(), 0, SEEK_SET) != 0)
    return fail(errno_error(errno, from));
  for (;;) {
    const auto count = read_block(source.get(), block, from);
    const auto copied = read_block(target.get(), copy, to);
    if (!count)
      return fail(count.error());
    if (!copied)
      return fail(copied.error());
    if (*count != *copied ||
        !std::equal(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(*count), copy.begin()))
      return fail(ErrorCode::failed, from + ": the copy differs");
    if (*count == 0)
      break;
  }
  if (::stat(from.c_str(), &after) != 0 || !same_state(before, after) ||
      bytes != static_cast<std::uint64_t>(before.st_size))
    return fail(ErrorCode::failed, from + ": changed while it was copied");
  return bytes;
}

/// One dataset: its files into a directory of this process, which is renamed when all of them are there.
Result<std::uint64_t> copy_dataset(const fs::path& from, const fs::path& to, const fs::path& scratch) {
  std::error_code error;
  fs::remove_all(scratch, error);
  if (!fs::create_directories(scratch, error))
    return fail(ErrorCode::failed, scratch.string() + ": " + error.message());
  const auto names = files_of(from);
  std::uint64_t bytes = 0;
  for (const std::string& name : names) {
    const auto copied = copy_one_file(from / name, scratch / name);
    if (!copied)
      return copied;
    bytes += *copied;
  }
  if (names.empty() || files_of(from) != names)
    return fail(ErrorCode::failed, from.string() + ": changed while it was copied");
  fs::create_directories(to.parent_path(), error);
  if (error)
    return fail(ErrorCode::failed, to.string() + ": " + error.message());
  if (::rename(scratch.c_str(), to.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST)
    return fail(errno_error(errno, to.string())); // one that is there by now is as good
  return bytes;
}

std::uint64_t size_of(const fs::path& directory) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const std::string& name : files_of(directory))
    bytes += fs::file_size(directory / name, error);
  return bytes;
}

std::uint64_t free_bytes(const std::string& directory) {
  struct statvfs info{};
  return ::statvfs(directory.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize : 0;
}

Seeded seed_all(const std::string& shared, const std::string& local, std::uint64_t keep_free_bytes) {
  Seeded result;
  std::vector<fs::path> datasets;
  find_datasets(shared, 0, datasets);
  std::sort(datasets.begin(), datasets.end());
  const fs::path scratch = fmt::format("{}/.sharefs-seed-{}", local, ::getpid());
  std::error_code error;
  for (const fs::path& from : datasets) {
    const fs::path to = local / from.lexically_relative(shared);
    if (fs::exists(to, error))
      continue;
    if (const std::uint64_t size = size_of(from); free_bytes(local) < size + keep_free_bytes) {
      result.skipped.push_back(fmt::format("{}: {} do not fit", from.string(), format_bytes(size)));
      continue;
    }
    if (const auto copied = copy_dataset(from, to, scratch)) {
      ++result.datasets;
      result.bytes += *copied;
    } else {
      result.skipped.push_back(copied.error().message);
    }
  }
  fs::remove_all(scratch, error);
  return result;
}

/// What processes that were killed while seeding have left. A name whose process lives is another's, or its number was
/// given again: then it is cleaned up another time.
void remove_abandoned(const std::string& local) {
  constexpr std::string_view k_name = ".sharefs-seed-";
  std::error_code error;
  std::vector<fs::path> abandoned;
  for (fs::directory_iterator it(local, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!name.starts_with(k_name))
      continue;
    pid_t pid = 0;
    std::from_chars(name.data() + k_name.size(), name.data() + name.size(), pid);
    if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH)
      abandoned.push_back(it->path());
  }
  for (const fs::path& path : abandoned)
    fs::remove_all(path, error);
}

} // namespace

Result<Seeded> seed_cache(const std::string& shared, const std::string& local, std::uint64_t keep_free_bytes,
                          std::chrono::milliseconds deadline) {
  const pid_t parent = ::getpid();
  return sys::call(std::nullopt, deadline, [&]() -> Result<Seeded> {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // Ctrl-C ends the parent only: a child has a process group of its own
    if (::getppid() != parent)
      return fail(ErrorCode::interrupted, "interrupted");
    remove_abandoned(local);
    return seed_all(shared, local, keep_free_bytes);
  });
}

} // namespace sharefs::cachefix
