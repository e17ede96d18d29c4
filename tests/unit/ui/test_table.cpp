#include "base/text.hpp"
#include "base/visible.hpp"
#include "support/catch.hpp"
#include "ui/table.hpp"

using namespace sharefs;
using namespace sharefs::ui;

namespace {

Table shares() {
  Table table({{"SHARE"}, {"USED", true}, {"DETAIL", false, true}});
  table.add({{"data", Colour::none}, {"7%", Colour::none}, {"fine", Colour::none}});
  table.add({{"größe共", Colour::none}, {"100%", Colour::red}, {"", Colour::none}});
  return table;
}

} // namespace

TEST_CASE("table: columns by width of the characters, numbers to the right, no blanks at the end", "[table]") {
  CHECK(shares().render({}) == "SHARE   USED DETAIL\n"
                               "data      7% fine\n"
                               "größe共 100%\n");
  CHECK(Table({{"A"}}).empty());
  CHECK_FALSE(shares().empty());
}

TEST_CASE("table: colour only where there is a terminal or it is forced", "[table]") {
  ConsoleOptions options;
  options.colour = true;
  CHECK(shares().render(options).find('\x1b') == std::string::npos);
  options.out_terminal = true;
  CHECK(shares().render(options).find("\x1b[31m100%") != std::string::npos);
  options.out_terminal = false;
  options.force_colour = true;
  CHECK(shares().render(options).find("\x1b[31m100%") != std::string::npos);
}

TEST_CASE("table: cut to the terminal's width, never elsewhere", "[table]") {
  Table table({{"NAME"}, {"DETAIL", false, true}});
  const std::string longest(200, 'x');
  table.add({{"name", Colour::none}, {longest, Colour::none}});
  ConsoleOptions options;
  options.width = 40;
  CHECK(table.render(options).find(longest) != std::string::npos);
  options.out_terminal = true;
  const auto text = table.render(options);
  CHECK(text.find(longest) == std::string::npos);
  for (const auto& line : split_lines(text))
    CHECK(display_width(line) <= 40);
  CHECK(text == "NAME DETAIL\nname " + std::string(32, 'x') + "...\n");
}

TEST_CASE("table: on a narrow terminal marked columns are cut first, numbers never", "[table]") {
  Table table({{"NAME"}, {"SIZE", true}, {"A"}, {"B", false, true}});
  table.add({{std::string(30, 'n')}, {"1234567890"}, {"-"}, {std::string(30, 'b')}});
  ConsoleOptions options;
  options.out_terminal = true;
  options.width = 60;
  CHECK(table.render(options) == "NAME" + std::string(26, ' ') + "       SIZE B\n" + std::string(30, 'n') +
                                     " 1234567890 " + std::string(15, 'b') + "...\n");
  options.width = 40;
  CHECK(table.render(options) ==
        "NAME" + std::string(16, ' ') + "       SIZE B\n" + std::string(17, 'n') + "... 1234567890 " + "bbbbb...\n");
  options.width = 1;
  CHECK(table.render(options) == "NAME           SIZE B\nnnnnn... 1234567890 bbbbb...\n");
}

TEST_CASE("table: a column without a value is left out on a terminal only", "[table]") {
  Table table({{"NAME"}, {"USED", true}, {"DETAIL"}});
  table.add({{"a"}, {"-"}, {""}});
  table.add({{"b"}, {""}, {"x"}});
  CHECK(table.render({}) == "NAME USED DETAIL\na       -\nb         x\n");
  ConsoleOptions options;
  options.out_terminal = true;
  CHECK(table.render(options) == "NAME DETAIL\na\nb    x\n");
}

TEST_CASE("table: cells are data, never control", "[table]") {
  Table table({{"NAME"}});
  table.add({{"a\x1b[2J\nb\tc\\x41\xff", Colour::none}});
  CHECK(table.render({}) == "NAME\na\\033[2J\\nb\\tc\\x41\\377\n");
}

TEST_CASE("table: rows shorter or longer than the header", "[table]") {
  Table table({{"A"}, {"B"}});
  table.add({{"1", Colour::none}});
  table.add({{"1", Colour::none}, {"2", Colour::none}, {"3", Colour::none}});
  CHECK(table.render({}) == "A B\n1\n1 2\n");
}
