#include "cachefix/store/seed.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/process/pulse.hpp"
#include "tree/here.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>

namespace sharefs::cachefix {
namespace {

namespace fs = std::filesystem;

// HF_MODULES_CACHE: init_dynamic_modules in datasets/load.py and evaluate/loading.py, get_cached_module_file in
// transformers/dynamic_module_utils.py. Below it KIND/datasets/NAME/HASH/*.py,
// transformers_modules/ORG/NAME/COMMIT/*.py.
constexpr std::array<const char*, 3> k_modules{"datasets_modules", "evaluate_modules", "transformers_modules"};
constexpr int k_deepest_module = 12;
constexpr int k_deepest_dataset = 6; // CACHE/BUILDER/CONFIG/VERSION/HASH, with one level to spare

bool is_table(const std::string& name) {
  return name.ends_with(".arrow") || name.ends_with(".parquet");
}

/// The names in a directory, sorted, as far as it could be read: what is not reached through a link.
struct Directory {
  std::vector<std::string> files, directories;
  std::error_code error;
  std::uint64_t inode = 0; ///< of a modules directory
};

Directory read_directory(const fs::path& path) {
  Directory found;
  std::error_code ignored;
  for (fs::directory_iterator it(path, found.error), end; !found.error && it != end; it.increment(found.error))
    if (const std::string name = it->path().filename(); it->is_symlink(ignored))
      continue;
    else if (it->is_regular_file(ignored))
      found.files.push_back(name);
    else if (it->is_directory(ignored))
      found.directories.push_back(name);
  std::ranges::sort(found.files);
  std::ranges::sort(found.directories);
  return found;
}

/// The files of a complete dataset directory; empty if it is none.
std::vector<std::string> files_of(const fs::path& path) {
  Directory found = read_directory(path);
  if (found.error || !std::ranges::binary_search(found.files, "dataset_info.json") ||
      std::ranges::none_of(found.files, is_table) || fs::exists(path.string() + ".incomplete", found.error))
    return {};
  return std::move(found.files);
}

/// Directories that may hold datasets: not models, downloads, hidden and unfinished ones.
bool may_hold_datasets(const std::string& name) {
  return !name.starts_with('.') && !name.starts_with("models--") && !name.ends_with(".incomplete") &&
         name != "downloads" && name != "hub" && name != "modules";
}

void find_datasets(const fs::path& directory, int depth, const sys::Pulse& pulse, std::vector<fs::path>& found) {
  pulse.add(tree::k_steps);
  if (depth > 0 && !files_of(directory).empty()) {
    found.push_back(directory);
    return;
  }
  if (depth == k_deepest_dataset)
    return;
  for (const std::string& name : read_directory(directory).directories)
    if (may_hold_datasets(name))
      find_datasets(directory / name, depth + 1, pulse, found);
}

/// What `admit` takes of `from`, into `scratch`. Bytes.
Result<std::uint64_t> copy_into(const fs::path& from, const fs::path& scratch, std::uint64_t inode,
                                const tree::Admit& admit, const sys::Pulse& pulse) {
  std::error_code error;
  fs::remove_all(scratch, error);
  // The way to a cache is the user's own choice, through whosever links; what lies in it is not followed.
  const auto real = [&error](const fs::path& path) {
    return (fs::canonical(path.parent_path(), error) / path.filename()).string();
  };
  tree::Options options;
  options.content_only = true;
  options.admit = admit;
  return tree::copy_here({.path = real(from), .inode = inode}, {real(scratch)}, options, pulse)
      .map(&tree::CopyReport::bytes);
}

/// One dataset: its files, which get their place when all of them are there.
Result<std::uint64_t> copy_dataset(const fs::path& from, const fs::path& to, const fs::path& scratch,
                                   const sys::Pulse& pulse) {
  const auto names = files_of(from);
  const auto copied = copy_into(
      from, scratch, 0,
      [&](const std::string& path, const struct stat&) -> Result<bool> {
        return std::ranges::binary_search(names, path);
      },
      pulse);
  if (!copied)
    return copied;
  if (names.empty() || files_of(from) != names)
    return fail(ErrorCode::failed, from.string() + ": changed while it was copied");
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (error)
    return fail(ErrorCode::failed, to.string() + ": " + error.message());
  if (::rename(scratch.c_str(), to.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST)
    return fail(errno_error(errno, to.string())); // one that is there by now is as good
  return copied;
}

std::uint64_t free_bytes(const std::string& directory) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  return error ? 0 : space.available;
}

/// What Python makes by itself, and what does not stand for code: locks, hidden and unfinished things.
bool is_of_module(const std::string& name) {
  return !name.starts_with('.') && name != "__pycache__" && !name.ends_with(".lock") && !name.ends_with(".pyc") &&
         !name.ends_with(".incomplete");
}

/// A directory that has code of its own goes as a whole; one with only an __init__.py holds packages.
bool is_package(const Directory& directory) {
  return std::ranges::any_of(directory.files, [](const std::string& name) { return name != "__init__.py"; });
}

Result<Directory> read_module_directory(const fs::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0)
    return fail(errno_error(errno, path.string()));
  if (!S_ISDIR(status.st_mode))
    return fail(ErrorCode::failed, path.string() + ": is no directory");
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return fail(ErrorCode::permission, path.string() + ": belongs to uid " + std::to_string(status.st_uid));
  Directory found = read_directory(path);
  if (found.error)
    return fail(ErrorCode::failed, path.string() + ": " + found.error.message());
  found.inode = status.st_ino;
  for (auto* const names : {&found.files, &found.directories})
    std::erase_if(*names, [](const std::string& name) { return !is_of_module(name); });
  return found;
}

/// Code: only what belongs to this user or root, and never through a link.
tree::Admit code_below(const fs::path& from, const std::function<bool(const std::string& path)>& wanted) {
  return [&from, wanted](const std::string& path, const struct stat& status) -> Result<bool> {
    if (!is_of_module(base_name(path)) || !wanted(path) || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
      return false;
    if (status.st_uid != ::geteuid() && status.st_uid != 0)
      return fail(ErrorCode::permission, (from / path).string() + ": belongs to uid " + std::to_string(status.st_uid));
    if (path_depth("/" + path) > k_deepest_module)
      return fail(ErrorCode::failed, (from / path).string() + ": is too deep for a module");
    return true;
  };
}

/// The packages below `from` that `to` does not have.
void seed_modules(const fs::path& from, const fs::path& to, const fs::path& scratch, std::uint64_t keep_free_bytes,
                  int depth, const sys::Pulse& pulse, Seeded& result) {
  std::error_code error;
  pulse.add(tree::k_steps);
  const auto found = read_module_directory(from);
  if (!found) {
    result.skipped.push_back(found.error().message);
    return;
  }
  fs::remove_all(scratch, error);
  if (!is_package(*found)) {
    if (depth > k_deepest_module || (fs::create_directories(to, error), error))
      return;
    const std::string init = "__init__.py";
    if (!found->files.empty() && !fs::exists(fs::symlink_status(to / init, error)) &&
        copy_into(from, scratch, found->inode, code_below(from, [&](const auto& path) { return path == init; }), pulse))
      fs::create_hard_link(scratch / init, to / init, error); // never over one that is there
    for (const std::string& name : found->directories)
      seed_modules(from / name, to / name, scratch, keep_free_bytes, depth + 1, pulse, result);
    return;
  }
  if (fs::exists(fs::symlink_status(to, error)))
    return;
  if (free_bytes(to.parent_path()) < keep_free_bytes) {
    result.skipped.push_back(from.string() + ": does not fit");
    return;
  }
  const auto copied = copy_into(from, scratch, found->inode, code_below(from, [](const auto&) { return true; }), pulse);
  if (!copied)
    result.skipped.push_back(copied.error().message);
  else if (::rename(scratch.c_str(), to.c_str()) == 0) {
    ++result.modules;
    result.bytes += *copied;
  } else if (errno != ENOTEMPTY && errno != EEXIST) { // one that is there by now is as good
    result.skipped.push_back(errno_error(errno, to.string()).message);
  }
}

std::uint64_t size_of(const fs::path& directory) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const std::string& name : files_of(directory))
    bytes += fs::file_size(directory / name, error);
  return bytes;
}

Seeded seed_all(const std::string& shared, const std::string& local, std::uint64_t keep_free_bytes,
                const sys::Pulse& pulse) {
  Seeded result;
  std::vector<fs::path> datasets;
  find_datasets(shared, 0, pulse, datasets);
  std::ranges::sort(datasets);
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
    if (const auto copied = copy_dataset(from, to, scratch, pulse)) {
      ++result.datasets;
      result.bytes += *copied;
    } else {
      result.skipped.push_back(copied.error().message);
    }
  }
  for (const char* const name : k_modules)
    if (fs::is_directory(fs::symlink_status(fs::path(shared) / name, error)))
      seed_modules(fs::path(shared) / name, fs::path(local) / name, scratch, keep_free_bytes, 0, pulse, result);
  fs::remove_all(scratch, error);
  return result;
}

/// What processes that were killed while seeding have left. A name whose process lives is another's, or its number was
/// given again: then it is cleaned up another time.
void remove_abandoned(const std::string& local) {
  constexpr std::string_view k_name = ".sharefs-seed-";
  std::error_code error;
  for (const std::string& name : read_directory(local).directories) {
    pid_t pid = 0;
    if (name.starts_with(k_name))
      std::from_chars(name.data() + k_name.size(), name.data() + name.size(), pid);
    if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH)
      fs::remove_all(fs::path(local) / name, error);
  }
}

} // namespace

Result<Seeded> seed_cache(const std::string& shared, const std::string& local, std::uint64_t keep_free_bytes,
                          std::chrono::milliseconds deadline) {
  const auto pulse = sys::Pulse::make();
  if (!pulse)
    return fail(pulse.error());
  return sys::call_while(*pulse, std::nullopt, deadline, [&]() -> Result<Seeded> {
    remove_abandoned(local);
    return seed_all(shared, local, keep_free_bytes, *pulse);
  });
}

} // namespace sharefs::cachefix
