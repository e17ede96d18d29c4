#include "config/source.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::config;

TEST_CASE("Source: bytes that are no configuration", "[source]") {
  struct Row {
    std::string text;
    Place place;
    std::string message;
  };
  const std::vector<Row> rows{
      {std::string("a: b\nc\0d", 8), {2, 2}, "a NUL byte: the file is binary or UTF-16"},
      {"ä\xff", {1, 2}, "byte 0xff is not UTF-8"},
      {"a\nb\xc3", {2, 2}, "byte 0xc3 is not UTF-8"},
      {"a\x80", {1, 2}, "byte 0x80 is not UTF-8"},
      {"a: \x1b[31m", {1, 4}, "control character 0x1b"},
      {"a: b\rc: d", {1, 5}, "control character 0x0d"},
      {std::string((1U << 20U) + 1, ' '), {1, 1}, "the file has 1.0 MiB; a configuration has at most 1.0 MiB"},
  };
  for (const auto& [text, place, message] : rows) {
    const auto problem = Source(text, "f").find_unreadable();
    INFO(message);
    REQUIRE(problem);
    CHECK(problem->place == place);
    CHECK(problem->message == message);
  }
  CHECK_FALSE(Source("\xef\xbb\xbf"
                     "a: ä\r\n\tb\n",
                     "f")
                  .find_unreadable());
  CHECK_FALSE(Source(std::string(1U << 20U, '#'), "f").find_unreadable());
}

TEST_CASE("Source: places count characters, lines are found", "[source]") {
  const Source source("ab\näö c\r\n\nlast", "f");
  CHECK(source.place(0, 1) == Place{1, 2});
  CHECK(source.place(1, 5) == Place{2, 4});
  CHECK(source.place_of(8) == Place{2, 4});
  CHECK(source.line(2) == "äö c");
  CHECK(source.line(3).empty());
  CHECK(source.line(4) == "last");
  CHECK(source.line(0).empty());
  CHECK(source.line(5).empty());
}

TEST_CASE("Source: the caret stands below its character", "[source]") {
  const auto context = [](const std::string& line, int column) {
    return Source(line, "f").error({{1, column}, "m", "h"}).context;
  };
  CHECK(context("abc", 3) == "  1 | abc\n    |   ^");
  CHECK(context("äöü", 3) == "  1 | äöü\n    |   ^");
  CHECK(context("\ta: b", 2) == "  1 | \ta: b\n    | \t^");
  CHECK(context("abc", 4) == "  1 | abc\n    |    ^"); // behind the end
  CHECK(context("a\x1b"
                "b",
                3) == "  1 | a?b\n    |   ^");
  CHECK(context("", 1).empty());
  const auto wide = context(std::string(150, 'a') + "X" + std::string(150, 'b'), 151);
  CHECK(wide ==
        "  1 | ..." + std::string(50, 'a') + "X" + std::string(49, 'b') + "...\n    | " + std::string(53, ' ') + "^");
}

TEST_CASE("Source: the message of an error", "[source]") {
  const auto error = Source("abc", "/etc/x.yaml").error({{1, 2}, "what", "do this"});
  CHECK(error.code == ErrorCode::config);
  CHECK(error.message == "/etc/x.yaml:1:2: what");
  CHECK(error.hint == "do this");
}

TEST_CASE("shown: one line, nothing invisible, not long", "[source]") {
  CHECK(shown("größe") == "größe");
  CHECK(shown("a\nb\x1b[31m") == "a\\nb\\033[31m");
  CHECK(shown(std::string(100, 'x')) == std::string(57, 'x') + "...");
  CHECK(shown(std::string(60, 'x')) == std::string(60, 'x'));
}
