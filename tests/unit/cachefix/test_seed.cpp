#include "cachefix/store/cache_store.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/process/fd.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::cachefix;
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds k_deadline{20};

struct Caches {
  test::TemporaryDirectory directory;
  fs::path shared = fs::path(directory.path()) / "shared";
  fs::path local = fs::path(directory.path()) / "local";
  fs::path scratch = fs::path(directory.path()) / ".sharefs-seed-local";

  Caches() {
    fs::create_directories(shared);
    fs::create_directories(local);
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((shared / path).parent_path());
    std::ofstream(shared / path) << text;
  }
  [[nodiscard]] tree::CopyReport seed() const {
    const auto seeded = seed_cache(shared.string(), local.string(), 0, k_deadline);
    INFO((seeded ? "" : seeded.error().message));
    REQUIRE(seeded);
    return *seeded;
  }
  [[nodiscard]] std::string text(const std::string& path) const {
    std::ifstream in(local / path);
    std::stringstream content;
    content << in.rdbuf();
    return content.str();
  }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(local), fs::directory_iterator()));
  }
};

/// Does somebody wait for a lock of it?
bool is_waited_for(const fs::path& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);)
    if (line.find("-> FLOCK") != std::string::npos &&
        line.find(":" + std::to_string(status.st_ino) + " ") != std::string::npos)
      return true;
  return false;
}

} // namespace

TEST_CASE("requirement 15: a warm start copies what the shared cache holds, in whole and once") {
  const Caches caches;
  caches.write("transformers_modules/org/model/c0ffee/modeling.py", "model");
  caches.write("kernel/abc/cubin", std::string(3'000'000, 'x'));
  caches.write("kernel/abc.lock", "");
  caches.write("json.incomplete/x", "half");
  const tree::CopyReport seeded = caches.seed();
  CHECK(seeded.files == 2);
  CHECK(seeded.bytes == 3'000'005);
  CHECK(caches.text("kernel/abc/cubin") == std::string(3'000'000, 'x'));
  CHECK(caches.entries() == 2);
  CHECK_FALSE(fs::exists(caches.local / "kernel/abc.lock"));
  caches.write("kernel/def/cubin", "newer");
  CHECK(caches.seed().files == 0); // it is warm
  CHECK(size_of_cache(caches.shared.string(), k_deadline) == 3'000'014);
}

TEST_CASE("a cache that does not fit is not copied, and an empty or missing one is none") {
  const Caches caches;
  CHECK(caches.seed().files == 0);
  caches.write("kernel/abc", "x");
  const auto seeded = seed_cache(caches.shared.string(), caches.local.string(), 1ULL << 60U, k_deadline);
  REQUIRE_FALSE(seeded);
  CHECK(seeded.error().message.find("do not fit") != std::string::npos);
  CHECK(seed_cache(caches.shared.string() + "/none", caches.local.string(), 0, k_deadline)->files == 0);
  CHECK(caches.entries() == 0);
}

TEST_CASE("what a killed warm start left is removed by the next") {
  const Caches caches;
  fs::create_directories(caches.scratch / "half");
  caches.write("kernel/abc", "x");
  CHECK(caches.seed().files == 1);
  CHECK_FALSE(fs::exists(caches.scratch));
  CHECK_FALSE(fs::exists(caches.local / "half"));
}

TEST_CASE("another process that copies the same is waited for, and nothing of its copy is removed") {
  const Caches caches;
  caches.write("kernel/abc", "x");
  fs::create_directories(caches.scratch / "kernel");
  sys::Fd other(::open(caches.scratch.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(other.get(), LOCK_EX) == 0);
  auto seeded = std::async(std::launch::async, [&] { return caches.seed().files; });
  while (!is_waited_for(caches.scratch))
    std::this_thread::yield();
  other.reset();
  CHECK(seeded.get() == 0);
  CHECK(fs::exists(caches.scratch / "kernel"));
}

TEST_CASE("attack: where some of a cache is somebody else's nothing is copied, and links lead nowhere") {
  const Caches caches;
  caches.write("a/x.py", "mine");
  caches.write("secret", "secret");
  fs::create_symlink(caches.shared / "secret", caches.shared / "a/link.py");
  fs::create_directory_symlink(caches.shared, caches.shared / "a/up");
  CHECK(caches.seed().files == 2);
  CHECK_FALSE(fs::exists(fs::symlink_status(caches.local / "a/link.py")));
  CHECK_FALSE(fs::exists(fs::symlink_status(caches.local / "a/up")));
  if (::geteuid() != 0)
    return;
  const Caches planted;
  planted.write("a/x.py", "mine");
  planted.write("a/deep/planted.py", "planted");
  REQUIRE(::chown((planted.shared / "a/deep/planted.py").c_str(), 65534, 65534) == 0);
  const auto seeded = seed_cache(planted.shared.string(), planted.local.string(), 0, k_deadline);
  REQUIRE_FALSE(seeded);
  CHECK(seeded.error().message.find("belongs to uid 65534") != std::string::npos);
  CHECK(planted.entries() == 0);
}
