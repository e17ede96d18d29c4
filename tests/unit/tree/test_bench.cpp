// One copy for tests/bench/tree.py and tests/lab/test_tree.py, and what it says of itself.
#include "given_tree.hpp"
#include "support/catch.hpp"
#include "tree/tree.hpp"

#include <cstdlib>
#include <iostream>

using namespace sharefs;

TEST_CASE("bench", "[.]") {
  const auto given = [](const char* name) {
    const char* const value = std::getenv((std::string("SHAREFS_BENCH_") + name).c_str());
    return std::string(value == nullptr ? "" : value);
  };
  tree::Options options;
  options.threads = static_cast<unsigned>(std::atoi(given("THREADS").c_str()));
  options.link_files = !given("LINK").empty();
  options.bytes_per_second = std::strtoull(given("LIMIT").c_str(), nullptr, 10);
  if (const auto as = given("AS"); !as.empty()) {
    const auto id = static_cast<uid_t>(std::atoi(as.c_str()));
    options.as = sys::User{.name = as, .uid = id, .gid = id, .groups = {id}, .home = "/"};
  }
  const auto copied = tree::copy({given("FROM")}, {given("TO")}, options);
  if (!copied) {
    std::cout << copied.error().message << "\n" << copied.error().context;
    std::exit(1);
  }
  std::cout << copied->files << " copied, " << copied->kept << " kept\n";
  if (given("COMPARE").empty())
    return;
  const auto differences = test::differences(given("FROM"), given("TO"));
  for (const auto& one : differences)
    std::cout << one << "\n";
  CHECK(differences.empty());
}
