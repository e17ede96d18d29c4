#include "cachefix/store/cache_store.hpp"
#include "plan/apply.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/process/call.hpp"
#include "sys/real_system.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::cachefix;

namespace {

constexpr const char* k_key = "0123456789ab";

CacheEntry entry(const std::string& path, std::uint64_t bytes, std::int64_t used, const char* in_use = "") {
  CacheEntry one;
  one.path = path;
  one.bytes = bytes;
  one.used = used;
  one.in_use = in_use;
  return one;
}

/// What is deleted, in order.
std::vector<std::string> pruned(const std::vector<CacheEntry>& entries, const PruneRequest& request) {
  std::vector<std::string> out;
  for (const plan::Step& step : plan_prune(entries, request, 1000).steps)
    out.push_back(std::get<plan::RemoveTree>(step.action).path);
  return out;
}

/// A directory of caches with one in it.
struct Store {
  test::TemporaryDirectory root;
  std::string cache = root / k_key;

  Store() {
    std::filesystem::create_directories(cache + "/json");
    std::ofstream(cache + "/json/data") << std::string(10'000, 'x');
  }
  [[nodiscard]] std::vector<CacheEntry> list() const {
    sys::RealSystem system;
    auto listed = list_caches(system, root.path(), std::chrono::seconds(5));
    REQUIRE(listed);
    return *std::move(listed);
  }
};

} // namespace

TEST_CASE("prune chooses by age and size, the longest unused first, and never one in use") {
  const std::vector<CacheEntry> all = {entry("a", 10, 100), entry("b", 20, 50, "in use"), entry("c", 30, 900),
                                       entry("d", 5, 10), entry("e", 1, 5, "a process could not be checked")};
  CHECK(pruned(all, {500, std::nullopt}) == std::vector<std::string>{"d", "a"});
  CHECK(pruned(all, {0, 56}) == std::vector<std::string>{"d", "a"});
  CHECK(pruned(all, {0, 61}) == std::vector<std::string>{"d"});
  CHECK(pruned(all, {2000, std::nullopt}).empty());
}

TEST_CASE("a directory that cannot be listed is not empty") {
  const Store store;
  std::filesystem::create_directory_symlink(store.root / "loop", store.root / "loop");
  sys::RealSystem system;
  CHECK_FALSE(list_caches(system, store.root / "loop", std::chrono::seconds(5)));
  CHECK(list_caches(system, store.root / "nothing", std::chrono::seconds(5))->empty());
}

TEST_CASE(
    "caches on disk: only directories with a key are listed; prune deletes the one that was listed, and its note") {
  namespace fs = std::filesystem;
  const Store store;
  fs::create_directories(store.root / "not-a-key");
  fs::create_directories(store.root / "outside");
  std::ofstream(store.root / "outside/keep") << "x";
  std::ofstream(store.root / (std::string(".origin-") + k_key)) << "/share/c\n";
  fs::create_directory_symlink(store.root / "outside", store.root / "abcdefabcdef");
  fs::create_directory_symlink(store.root / "outside", store.cache + "/link");
  {
    const std::ifstream open_file(store.cache + "/json/data");
    CHECK(store.list().at(0).in_use == "in use");
  }
  const auto listed = store.list();
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].stands_for == "/share/c");
  CHECK(listed[0].bytes >= 10'000);
  CHECK(listed[0].in_use.empty());

  sys::RealSystem system;
  const plan::Plan plan = plan_prune(listed, {}, listed[0].used);
  REQUIRE(plan.steps.size() == 2);
  CHECK(plan.steps[0].group == plan.steps[1].group);
  for (const plan::Step& step : plan.steps)
    CHECK(plan::apply_action(step.action, system));
  CHECK_FALSE(fs::exists(store.cache));
  CHECK_FALSE(fs::exists(store.root / (std::string(".origin-") + k_key)));
  CHECK(fs::exists(store.root / "outside/keep"));
}

TEST_CASE("prune deletes what one that was cut off has left, whatever its age, and counts none of it") {
  auto left = entry("/c/.old-0123456789ab.7", 1000, 999);
  left.left = true;
  const PruneRequest request{.older_than = 500, .keep = 100};
  CHECK(pruned({left, entry("/c/abcdefabcdef", 100, 1)}, request) == std::vector<std::string>{left.path});
}

TEST_CASE("a cache that is being deleted has its name no more, and half of it is listed as such") {
  namespace fs = std::filesystem;
  const Store store;
  const auto step = plan_prune(store.list(), {}, std::int64_t{1} << 40).steps.at(0);
  // Something that cannot be deleted cuts the prune off: a mount, here that of the child's own namespace.
  const auto done = sys::call(std::nullopt, std::chrono::seconds(30), [&]() -> Result<bool> {
    const auto on = store.cache + "/json";
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", on.c_str(), "tmpfs", 0, nullptr) != 0)
      return fail(errno_error(errno, on));
    sys::RealSystem system;
    return plan::apply_action(step.action, system).has_value();
  });
  if (!done) {
    WARN("no mounts here: nothing is tested");
    return;
  }
  CHECK_FALSE(*done);
  CHECK_FALSE(fs::exists(store.cache));
  const auto listed = store.list();
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].left);
  sys::RealSystem system;
  for (const auto& one : plan_prune(listed, {.older_than = 1'000'000, .keep = {}}, 0).steps)
    CHECK(plan::apply_action(one.action, system));
  CHECK(fs::is_empty(store.root.path()));
}

TEST_CASE("prune deletes the note of a cache, whatever it says") {
  const Store store;
  const std::string note = store.root / (std::string(".origin-") + k_key);
  SECTION("two lines") {
    std::ofstream(note) << "/data/share/two\nlines";
  }
  SECTION("too long") {
    std::ofstream(note) << std::string(1U << 20U, 'x');
  }
  sys::RealSystem system;
  for (const auto& step : plan_prune(store.list(), {}, std::int64_t{1} << 40).steps)
    CHECK(plan::apply_action(step.action, system));
  CHECK(std::filesystem::is_empty(store.root.path()));
}

TEST_CASE("attack: another directory in the place of the listed one is not deleted") {
  namespace fs = std::filesystem;
  const Store store;
  const plan::Plan plan = plan_prune(store.list(), {}, 0);
  REQUIRE(plan.steps.empty()); // used now
  const plan::Plan all = plan_prune(store.list(), {}, std::int64_t{1} << 40);
  fs::rename(store.cache, store.root / "moved");
  fs::create_directories(store.cache + "/victim");
  sys::RealSystem system;
  CHECK_FALSE(plan::apply_action(all.steps.at(0).action, system));
  CHECK(fs::exists(store.cache + "/victim"));
}

TEST_CASE("attack: a note that is a FIFO, a link or without end stops nobody") {
  const Store store;
  const std::string note = store.root / (std::string(".origin-") + k_key);
  SECTION("a FIFO") {
    REQUIRE(::mkfifo(note.c_str(), 0600) == 0);
  }
  SECTION("a link") {
    std::filesystem::create_symlink("/etc/passwd", note);
  }
  SECTION("too long") {
    std::ofstream(note) << std::string(1U << 20U, 'x');
  }
  SECTION("a device without end") {
    std::filesystem::create_symlink("/dev/zero", note);
  }
  CHECK(store.list().at(0).stands_for.empty());
}

TEST_CASE("a cache is in use while a live process names it, also by a path through links") {
  namespace fs = std::filesystem;
  const test::TemporaryDirectory directory;
  const std::string disk = directory / "disk", root = directory / "link";
  const std::string cache = root + "/0123456789ab";
  fs::create_directories(disk + "/0123456789ab");
  fs::create_directory_symlink(disk, root);
  sys::RealSystem system;
  const auto is_in_use = [&] { return !list_caches(system, root, std::chrono::seconds(5))->at(0).in_use.empty(); };
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
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!used && std::chrono::steady_clock::now() < end)
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
  CHECK(with_process({"sh", "-c", "cat; :", "--cache_dir=/cache_of_a_container/0123456789ab/json"}));
  CHECK(with_process({"sh", "-c", "cd " + cache + " && cat; :"}));
  CHECK_FALSE(is_in_use());
}
