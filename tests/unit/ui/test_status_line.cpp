#include "support/catch.hpp"
#include "ui/status_line.hpp"

#include <sstream>

using namespace sharefs::ui;

TEST_CASE("status line: messages push it aside", "[status_line]") {
  std::ostringstream err;
  StatusLine line(err);
  line.print("one\n");
  line.draw("working", 80);
  line.print("two\n");
  line.print("three\n");
  CHECK(err.str() == "one\n\rworking\r       \rtwo\nthree\n");
}

TEST_CASE("status line: a shorter line covers a longer one, erasing leaves nothing", "[status_line]") {
  std::ostringstream err;
  StatusLine line(err);
  line.draw("longer", 80);
  line.draw("short", 80);
  line.erase();
  line.erase();
  CHECK(err.str() == "\rlonger\rshort \r      \r");
}

TEST_CASE("status line: never as wide as the terminal", "[status_line]") {
  std::ostringstream err;
  StatusLine line(err);
  line.draw("0123456789", 10);
  CHECK(err.str() == "\r012345...");
  std::ostringstream none;
  StatusLine(none).draw("x", 0);
  CHECK(none.str() == "\r");
}
