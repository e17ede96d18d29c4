#include "base/visible.hpp"
#include "support/catch.hpp"

using namespace sharefs;

TEST_CASE("visible: nothing reaches a terminal that it would obey", "[visible]") {
  CHECK(visible("größe 共享 it's \\x") == "größe 共享 it's \\x");
  CHECK(visible("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  CHECK(visible("\x1b]0;title\x07") == "\\033]0;title\\007");
  CHECK(visible(std::string("\0\x7f", 2)) == "\\000\\177");
  CHECK(visible("\xff\xc3(") == "\\377\\303(");
  CHECK(visible("\xc2\x9b") == "\\302\\233"); // CSI as one character of C1
  CHECK(visible("a\xe2\x80\xae"
                "b") == "a\\342\\200\\256b"); // right-to-left override
  CHECK(visible("\xef\xbb\xbf") == "\\357\\273\\277");
  CHECK(visible("\xc2\xad") == "\\302\\255");                  // soft hyphen
  CHECK(visible("\xe2\x81\xa0") == "\\342\\201\\240");         // word joiner
  CHECK(visible("\xf3\xa0\x81\x81") == "\\363\\240\\201\\201"); // a tag
  CHECK(visible("\xed\xa0\x80") == "\\355\\240\\200");         // a surrogate is no UTF-8
  CHECK(visible("").empty());
}

TEST_CASE("visible_lines keeps line feeds and tabs only", "[visible]") {
  CHECK(visible_lines("a\n\tb\r\n\x1b[2J") == "a\n\tb\\r\n\\033[2J");
}

TEST_CASE("find_invisible", "[visible]") {
  CHECK_FALSE(find_invisible("größe"));
  CHECK_FALSE(find_invisible(""));
  CHECK(find_invisible("ä\n") == 2U);
  CHECK(find_invisible("ä\xe2\x80\x8b") == 2U);
  CHECK(find_invisible("ab\xff") == 2U);
}

TEST_CASE("display_width and fit_width count columns", "[visible]") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("größe") == 5);
  CHECK(display_width("共享") == 4);
  CHECK(display_width("e\xcc\x81") == 1); // combining acute
  CHECK(fit_width("abcdef", 6) == "abcdef");
  CHECK(fit_width("abcdefg", 6) == "abc...");
  CHECK(fit_width("共享共享", 7) == "共享...");
  CHECK(fit_width("共享共享", 6) == "共...");
  CHECK(fit_width("abcdef", 2) == "..");
  CHECK(fit_width("abcdef", 0).empty());
}
