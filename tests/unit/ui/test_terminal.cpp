#include "support/catch.hpp"
#include "ui/terminal.hpp"

using namespace sharefs::ui;

TEST_CASE("decide_console: when there is colour", "[terminal]") {
  struct Row {
    TerminalFacts facts;
    bool colour, forced;
  };
  const auto facts = [](bool out, bool err, std::string term, std::string no_color = "", std::string force = "") {
    TerminalFacts result;
    result.out = out;
    result.err = err;
    result.term = std::move(term);
    result.no_color = std::move(no_color);
    result.clicolor_force = std::move(force);
    return result;
  };
  const std::vector<Row> rows{
      {facts(true, true, "xterm"), true, false},
      {facts(false, true, "xterm"), true, false},
      {facts(false, false, "xterm"), false, false},
      {facts(true, true, "dumb"), false, false},
      {facts(true, true, ""), false, false},
      {facts(true, true, "xterm", "1"), false, false},
      {facts(false, false, "", "", "1"), true, true},
      {facts(false, false, "", "", "0"), false, false},
      {facts(true, true, "xterm", "1", "1"), false, false}, // NO_COLOR wins
  };
  for (const auto& [given, colour, forced] : rows) {
    const auto options = decide_console(given);
    INFO(given.out << given.err << " TERM=" << given.term << " NO_COLOR=" << given.no_color
                   << " CLICOLOR_FORCE=" << given.clicolor_force);
    CHECK(options.colour == colour);
    CHECK(options.force_colour == forced);
    CHECK(options.out_terminal == given.out);
    CHECK(options.err_terminal == given.err);
  }
}

TEST_CASE("decide_console: the width", "[terminal]") {
  const auto width = [](int window, std::string columns) {
    TerminalFacts facts;
    facts.window_width = window;
    facts.columns = std::move(columns);
    return decide_console(facts).width;
  };
  CHECK(width(132, "40") == 132);
  CHECK(width(0, "40") == 40);
  for (const std::string wrong : {"", "0", "-5", "x", "40x", "99999999999"})
    CHECK(width(0, wrong) == 80);
}

TEST_CASE("painted: escapes the text, not itself", "[terminal]") {
  CHECK(painted(Colour::green, "ok", true) == "\x1b[32mok\x1b[0m");
  CHECK(painted(Colour::green, "ok", false) == "ok");
  CHECK(painted(Colour::none, "ok", true) == "ok");
  CHECK(painted(Colour::red, "a\x1b[0m", true) == "\x1b[31ma\\033[0m\x1b[0m");
}
