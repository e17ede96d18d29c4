#include "conda/guard_wheel.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::conda;

TEST_CASE("where the guard lies in an environment", "[guard_wheel]") {
  CHECK(guard_directory("3.11.9") == "lib/python3.11/site-packages");
  CHECK(guard_directory("3.6") == "lib/python3.6/site-packages");
  for (const auto* python : {"", "3", "2.7.18", "3.5.2", "4.0", "3.x"})
    CHECK(guard_directory(python).empty());
}

TEST_CASE("the guard is known by its record", "[guard_wheel]") {
  CHECK(guard_records({"sharefs_guard", "sharefs_guard-0.1.0.dist-info", "sharefs_guard_x-1.dist-info",
                       "x-1.dist-info"}) == std::vector<std::string>{"sharefs_guard-0.1.0.dist-info"});
  CHECK(record_in({{"sharefs_guard/x.py", ""}, {"sharefs_guard-2.dist-info/RECORD", ""}}) ==
        "sharefs_guard-2.dist-info");
  CHECK(record_in({}).empty());
  CHECK(has_guard({{"numpy", "1", "0"}, {"sharefs_guard", "0.1.0", "", true}}));
  CHECK_FALSE(has_guard({{"numpy", "1", "0"}}));
}
