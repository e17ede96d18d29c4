#include "cachefix/cache_store.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::cachefix;

namespace {

CacheEntry entry(const std::string& path, std::uint64_t bytes, std::int64_t used, bool in_use = false) {
  CacheEntry one;
  one.path = path;
  one.bytes = bytes;
  one.used = used;
  one.in_use = in_use;
  return one;
}

std::vector<std::string> paths(const std::vector<CacheEntry>& entries) {
  std::vector<std::string> out;
  for (const CacheEntry& one : entries)
    out.push_back(one.path);
  return out;
}

} // namespace

TEST_CASE("prune chooses by age and size, the longest unused first, and never one in use") {
  const std::vector<CacheEntry> all = {entry("a", 10, 100), entry("b", 20, 50, true), entry("c", 30, 900),
                                       entry("d", 5, 10)};
  CHECK(paths(choose_to_prune(all, {500, std::nullopt}, 1000)) == std::vector<std::string>{"d", "a"});
  CHECK(paths(choose_to_prune(all, {0, 55}, 1000)) == std::vector<std::string>{"d", "a"});
  CHECK(paths(choose_to_prune(all, {0, 60}, 1000)) == std::vector<std::string>{"d"});
  CHECK(choose_to_prune(all, {2000, std::nullopt}, 1000).empty());
}

TEST_CASE("caches on disk: only directories with a key are listed, one in use is not removed, links are not followed") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("sharefs-cache-test-" + std::to_string(::getpid()));
  fs::create_directories(root / "0123456789ab/json");
  fs::create_directories(root / "not-a-key");
  fs::create_directories(root / "outside");
  std::ofstream(root / "outside/keep") << "x";
  std::ofstream(root / "0123456789ab/json/data") << std::string(10'000, 'x');
  std::ofstream(root / ".origin-0123456789ab") << "/share/c\n";
  fs::create_directory_symlink(root / "outside", root / "0123456789ab/link");
  std::ifstream open_file(root / "0123456789ab/json/data");

  const auto listed = list_caches(root.string(), std::chrono::seconds(5));
  REQUIRE(listed);
  REQUIRE(listed->size() == 1);
  CHECK(listed->front().stands_for == "/share/c");
  CHECK(listed->front().bytes >= 10'000);
  CHECK(listed->front().in_use);
  CHECK_FALSE(remove_cache(root.string(), listed->front(), std::chrono::seconds(5)));
  open_file.close();
  CHECK(remove_cache(root.string(), listed->front(), std::chrono::seconds(5)));
  CHECK_FALSE(fs::exists(root / "0123456789ab"));
  CHECK(fs::exists(root / "outside/keep"));
  CHECK_FALSE(remove_cache(root.string(), entry((root / "not-a-key").string(), 0, 0), std::chrono::seconds(5)));
  fs::remove_all(root);
}

TEST_CASE("a cache is in use while a live process names it, also by a path through links") {
  namespace fs = std::filesystem;
  const test::TemporaryDirectory directory;
  const std::string disk = directory / "disk", root = directory / "link";
  const std::string cache = root + "/0123456789ab";
  fs::create_directories(disk + "/0123456789ab");
  fs::create_directory_symlink(disk, root);
  const auto is_in_use = [&] { return list_caches(root, std::chrono::seconds(5))->at(0).in_use; };
  CHECK_FALSE(is_in_use());

  // `cat` waits for the end of its input, which is this process's to give.
  const auto with_process = [&](std::vector<std::string> words) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    std::vector<char*> argv;
    for (std::string& word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
    pid_t child = 0;
    REQUIRE(::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
    bool used = false;
    for (int i = 0; i < 500 && !used; ++i)
      used = is_in_use();
    ::close(ends[0]);
    ::close(ends[1]);
    ::waitpid(child, nullptr, 0);
    return used;
  };
  ::setenv("SHAREFS_TEST_CACHE", cache.c_str(), 1);
  CHECK(with_process({"cat"}));
  ::unsetenv("SHAREFS_TEST_CACHE");
  CHECK(with_process({"sh", "-c", "cat; :", cache}));
  CHECK(with_process({"sh", "-c", "cd " + cache + " && cat; :"}));
  CHECK_FALSE(is_in_use());
}
