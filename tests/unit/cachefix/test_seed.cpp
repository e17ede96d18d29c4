#include "cachefix/seed.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace sharefs;
using namespace sharefs::cachefix;
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds k_deadline{20};

struct Caches {
  test::TemporaryDirectory directory;
  fs::path shared = fs::path(directory.path()) / "shared";
  fs::path local = fs::path(directory.path()) / "local";

  Caches() {
    fs::create_directories(shared);
    fs::create_directories(local);
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((shared / path).parent_path());
    std::ofstream(shared / path) << text;
  }
  void dataset(const std::string& path, const std::string& table) const {
    write(path + "/dataset_info.json", "{}");
    write(path + "/json-train.arrow", table);
  }
  [[nodiscard]] Seeded seed() const {
    const auto seeded = seed_cache(shared.string(), local.string(), 0, k_deadline);
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

} // namespace

TEST_CASE("requirement 15: a warm start copies complete datasets, and only those") {
  const Caches caches;
  caches.dataset("json/default-1/0.0.0/abc", std::string(3'000'000, 'x'));
  caches.write("json/default-2/0.0.0/def/json-train.arrow", "no info");
  caches.dataset("json/default-3/0.0.0/ghi", "somebody builds it");
  fs::create_directories(caches.shared / "json/default-3/0.0.0/ghi.incomplete");
  caches.dataset("models--x/snapshots/1", "a model");
  const Seeded seeded = caches.seed();
  CHECK(seeded.datasets == 1);
  CHECK(seeded.bytes == 3'000'002);
  CHECK(caches.text("json/default-1/0.0.0/abc/json-train.arrow") == std::string(3'000'000, 'x'));
  CHECK(caches.entries() == 1); // no scratch directory, no models
  CHECK_FALSE(fs::exists(caches.local / "json/default-2"));
  CHECK_FALSE(fs::exists(caches.local / "json/default-3"));
  CHECK(caches.seed().datasets == 0); // it is there
}

TEST_CASE("a dataset that does not fit is not copied, and said so") {
  const Caches caches;
  caches.dataset("json/default-1/0.0.0/abc", "x");
  const auto seeded = seed_cache(caches.shared.string(), caches.local.string(), 1ULL << 60U, k_deadline);
  REQUIRE(seeded);
  CHECK(seeded->datasets == 0);
  REQUIRE(seeded->skipped.size() == 1);
  CHECK(seeded->skipped[0].find("do not fit") != std::string::npos);
}

TEST_CASE("what a killed warm start left is removed by the next") {
  const Caches caches;
  fs::create_directories(caches.local / ".sharefs-seed-2147483646/half");
  (void)caches.seed();
  CHECK(caches.entries() == 0);
}
