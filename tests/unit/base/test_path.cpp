#include "base/path.hpp"
#include "support/catch.hpp"

using namespace sharefs;

TEST_CASE("normalize_path", "[path]") {
  CHECK(normalize_path("/a//b/./c/") == "/a/b/c");
  CHECK(normalize_path("/a/../../b") == "/b");
  CHECK(normalize_path("x/../y", "/home/u") == "/home/u/y");
  CHECK(normalize_path("../../..", "/home/u") == "/");
  CHECK(normalize_path("", "/home/u") == "/home/u");
  CHECK(normalize_path("/") == "/");
}

TEST_CASE("the missing directories of a path", "[path]") {
  using Paths = std::vector<std::string>;
  CHECK(paths_below("/", "/data/share") == Paths{"/data", "/data/share"});
  CHECK(paths_below("/data", "/data/share/x") == Paths{"/data/share", "/data/share/x"});
  CHECK(paths_below("/data/other", "/data/share") == Paths{"/data/share"}); // another way to it, by a link
  CHECK(paths_below("/disk", "/data/share") == Paths{"/data", "/data/share"});
  CHECK(paths_below("", "/data") == Paths{"/data"}); // it is not known what is there
  CHECK(paths_below("/data", "/data").empty());
  CHECK(paths_below("/", "/").empty());
}

TEST_CASE("is_under compares whole components", "[path]") {
  CHECK(is_under("/data", "/data"));
  CHECK(is_under("/data/x", "/data"));
  CHECK_FALSE(is_under("/data2", "/data"));
  CHECK_FALSE(is_under("/", "/data"));
  CHECK(is_under("/data", "/"));
  CHECK_FALSE(is_under("relative", "/"));
}

TEST_CASE("parts of a path", "[path]") {
  CHECK(parent_path("/a/b") == "/a");
  CHECK(parent_path("/a") == "/");
  CHECK(parent_path("/") == "/");
  CHECK(base_name("/a/b") == "b");
  CHECK(base_name("b") == "b");
  CHECK(base_name("/").empty());
  CHECK(join_path("/a", "b") == "/a/b");
  CHECK(join_path("/", "b") == "/b");
  CHECK(join_path("/a", "/b") == "/b");
  CHECK(join_path("/a", "") == "/a");
}
