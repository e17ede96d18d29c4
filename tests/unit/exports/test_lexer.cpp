#include "exports/lexer.hpp"
#include "support/catch.hpp"

using namespace sharefs::exports;

namespace {

std::vector<std::string> words_of_line(std::string_view text, std::size_t limit = 512) {
  std::vector<std::string> words;
  Lexer lexer(text);
  Word word;
  for (lexer.skip_blanks(); lexer.next(limit, word) == Lexer::Got::word; lexer.skip_blanks())
    words.push_back(word.text);
  return words;
}

} // namespace

TEST_CASE("words are split, joined over lines, unquoted and unescaped as exportfs does it") {
  using Words = std::vector<std::string>;
  struct Case {
    std::string text;
    Words words;
  };
  const auto row = GENERATE(values<Case>({
      {"/a b(rw)", {"/a", "b(rw)"}},
      {"  \t/a\tb", {"/a", "b"}},
      {"/a # comment", {"/a"}},
      {"/a b(rw)#x", {"/a", "b(rw)#x"}},
      {"\"sp ace\" x", {"sp ace", "x"}},
      {"sp\\040ace", {"sp ace"}},
      {"a\"b c\"d", {"ab cd"}},
      {"/a \\\n   b\n/c", {"/a", "b"}},
      {"/a\\\nb", {"/a", "b"}},
      {"a\\b", {"a\\b"}},
      {"a\\", {"a\\"}},
      {"a\\400", {"a\\400"}},              // more than a byte
      {"a\\08", {"a\\08"}},                // no octal digits
      {"\\134040", {" "}},                 // decoded over and over
      {"\\134\\060\\064\\060", {"\\040"}}, // so digits are escaped too
      {"a\\042b", {"a\"b"}},
      {"a\rb", {"a", "b"}},
      {"\"a\nb\" c", {"a\nb", "c"}},
      {"\"a\\\n \t b\" c", {"a b", "c"}},
  }));
  CAPTURE(row.text);
  CHECK(words_of_line(row.text) == row.words);
}

TEST_CASE("an empty word ends the line like its end does") {
  Lexer lexer("\"\" x");
  Word word;
  CHECK(lexer.next(512, word) == Lexer::Got::nothing);
  CHECK_FALSE(lexer.at_line_end());
}

TEST_CASE("a word of the limit or more is too long") {
  Word word;
  CHECK(Lexer(std::string(511, 'a')).next(512, word) == Lexer::Got::word);
  CHECK(Lexer(std::string(512, 'a')).next(512, word) == Lexer::Got::too_long);
  // An escape takes four bytes of the buffer until it is complete.
  const auto escaped = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += "\\141";
    return text;
  };
  CHECK(Lexer(escaped(509)).next(512, word) == Lexer::Got::word);
  CHECK(Lexer(escaped(510)).next(512, word) == Lexer::Got::too_long);
}

TEST_CASE("a NUL byte hides the rest of a word, as in a C string") {
  Lexer lexer("a\\000b c");
  Word word;
  REQUIRE(lexer.next(512, word) == Lexer::Got::word);
  CHECK(word.text == "a");
  CHECK(word.nul);
}

TEST_CASE("offsets lead back to the source") {
  const std::string text = "x \"a\\040b\"";
  Lexer lexer(text);
  Word word;
  lexer.next(512, word);
  lexer.skip_blanks();
  REQUIRE(lexer.next(512, word) == Lexer::Got::word);
  CHECK(word.text == "a b");
  CHECK(word.begin == 2);
  CHECK(lexer.offsets_of(word) == std::vector<std::size_t>{3, 4, 8});
}

TEST_CASE("lines and columns count from 1") {
  const LineIndex lines("ab\n\nc");
  CHECK(lines.at(0).line == 1);
  CHECK(lines.at(1).column == 2);
  CHECK(lines.at(3).line == 2);
  CHECK(lines.at(4).line == 3);
  CHECK(lines.at(4).column == 1);
  CHECK(lines.at(5).column == 2); // the end of the file
}

TEST_CASE("a comment that ends in a backslash does not go on") {
  Lexer lexer("# c \\\n/b x");
  Word word;
  lexer.skip_lines();
  REQUIRE(lexer.next(512, word) == Lexer::Got::word);
  CHECK(word.text == "/b");
}
