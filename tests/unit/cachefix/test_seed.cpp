#include "cachefix/store/seed.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
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

TEST_CASE("a warm start copies packages of a modules cache, each in whole") {
  const Caches caches;
  const std::string dataset = "datasets_modules/datasets/glue/0123abcd";
  caches.write("datasets_modules/__init__.py", "");
  caches.write("datasets_modules/datasets/glue/__init__.py", "");
  caches.write(dataset + "/glue.py", "code");
  caches.write(dataset + "/glue.json", "{}");
  caches.write(dataset + "/__pycache__/glue.cpython-311.pyc", "compiled");
  caches.write("datasets_modules/datasets/glue.lock", "");
  caches.write("evaluate_modules/metrics/evaluate-metric--f1/77/f1.py", "metric");
  caches.write("transformers_modules/org/model/c0ffee/modeling.py", "model");
  caches.write("transformers_modules/org/model/c0ffee/parts/layers.py", "layers");
  caches.write("other/code.py", "not a module");
  const Seeded seeded = caches.seed();
  CHECK(seeded.datasets == 0);
  CHECK(seeded.modules == 3);
  CHECK(seeded.bytes == 4 + 2 + 6 + 5 + 6);
  CHECK(seeded.skipped.empty());
  CHECK(caches.text(dataset + "/glue.py") == "code");
  CHECK(caches.text("transformers_modules/org/model/c0ffee/parts/layers.py") == "layers");
  CHECK(fs::exists(caches.local / "datasets_modules/datasets/glue/__init__.py"));
  CHECK_FALSE(fs::exists(caches.local / dataset / "__pycache__"));
  CHECK_FALSE(fs::exists(caches.local / "datasets_modules/datasets/glue.lock"));
  CHECK(caches.entries() == 3); // no scratch, nothing else
  std::ofstream(caches.local / dataset / "glue.py") << "mine";
  caches.write("datasets_modules/datasets/glue/4567/glue.py", "newer");
  CHECK(caches.seed().modules == 1);
  CHECK(caches.text(dataset + "/glue.py") == "mine"); // what is there stays
}

TEST_CASE("attack: code of somebody else, and what links lead to, is not copied") {
  const Caches caches;
  caches.write("transformers_modules/a/x.py", "mine");
  caches.write("transformers_modules/b/x.py", "mine");
  caches.write("transformers_modules/b/deep/planted.py", "planted");
  caches.write("transformers_modules/c/planted.py", "planted");
  caches.write("secret.py", "secret");
  fs::create_symlink(caches.shared / "secret.py", caches.shared / "transformers_modules/a/link.py");
  fs::create_directory_symlink(caches.shared, caches.shared / "transformers_modules/a/up");
  fs::create_directory_symlink(caches.shared / "transformers_modules", caches.shared / "datasets_modules");
  if (::geteuid() == 0) {
    REQUIRE(::chown((caches.shared / "transformers_modules/b/deep/planted.py").c_str(), 65534, 65534) == 0);
    REQUIRE(::chown((caches.shared / "transformers_modules/c").c_str(), 65534, 65534) == 0);
  }
  const Seeded seeded = caches.seed();
  CHECK(caches.text("transformers_modules/a/x.py") == "mine");
  CHECK_FALSE(fs::exists(fs::symlink_status(caches.local / "transformers_modules/a/link.py")));
  CHECK_FALSE(fs::exists(fs::symlink_status(caches.local / "transformers_modules/a/up")));
  CHECK_FALSE(fs::exists(caches.local / "datasets_modules"));
  if (::geteuid() != 0)
    return;
  CHECK(seeded.modules == 1);
  CHECK_FALSE(fs::exists(caches.local / "transformers_modules/b")); // not in part
  CHECK_FALSE(fs::exists(caches.local / "transformers_modules/c"));
  REQUIRE(seeded.skipped.size() == 2);
  CHECK(seeded.skipped[0].ends_with("b/deep/planted.py: belongs to uid 65534"));
  CHECK(seeded.skipped[1].ends_with("transformers_modules/c: belongs to uid 65534"));
}
