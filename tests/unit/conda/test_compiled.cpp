#include "conda/compiled.hpp"

#include "support/catch.hpp"

using namespace sharefs::conda;
using namespace std::string_literals;

TEST_CASE("requirement 11: the source of a compiled file", "[compiled]") {
  CHECK(source_of("lib/x/__pycache__/a.cpython-311.pyc") == "lib/x/a.py");
  CHECK(source_of("lib/x/__pycache__/a.cpython-311.opt-2.pyc") == "lib/x/a.py");
  CHECK(source_of("__pycache__/a.cpython-311.pyc") == "a.py");
  CHECK(source_of("lib/x/a.pyc").empty());
  CHECK(source_of("a.pyc").empty());
}

TEST_CASE("requirement 11: when Python would compile again", "[compiled]") {
  const auto header = "\xa7\x0d\x0d\x0a"s + "\0\0\0\0"s + "\x01\x02\0\0"s + "\x05\0\0\0"s;
  CHECK_FALSE(is_stale(header, 0x201, 5));
  CHECK(is_stale(header, 0x202, 5));
  CHECK(is_stale(header, 0x201, 6));
  CHECK_FALSE(is_stale(header, 0x100000201, 5)); // 32 bits of the time are kept
  CHECK(is_stale(header.substr(0, 15), 0x201, 5));
  auto hashed = header;
  hashed[4] = 1; // unchecked-hash: valid at any time
  CHECK_FALSE(is_stale(hashed, 7, 7));
}
