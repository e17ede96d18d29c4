#include "cachefix/cache_store.hpp"
#include "support/catch.hpp"

#include <filesystem>
#include <fstream>
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
