#include "mounts/shell_commands.hpp"
#include "support/catch.hpp"

using namespace sharefs::mounts;

TEST_CASE("the command that ends a script") {
  const std::vector<std::pair<std::string, std::size_t>> scripts{
      {"", 0},
      {"#!/bin/sh\nfoo\nexit 0\n", 3},
      {"exit 0 # all is done", 1},
      {"a\n  exit $?\nb", 2},
      {"a; exit\n", 1},
      {"exec /usr/sbin/agetty -L \"tty S0\"\n", 1},
      {"exec >/var/log/rc.log 2>&1\nexec 3>&1\nset -x\n", 0},
      {"# exit 0\necho exit\necho 'a\nexit 0\n' \"\nexit 0\n\"\n", 0},
      {"if a; then\nexit 0\nfi\nb\n", 0},
      {"if a; then exit 0; elif b; then\nexit 1; else\nexit 2\nfi\nexit 3\n", 5},
      {"f() {\nexit 1\n}\nf\nexit\n", 5},
      {"a || exit 0\nb &&\nexit 0\nc || {\nexit 1\n}\n(\nexit 0\n)\na | exit\n", 0},
      {"case $1 in\na) exit 0 ;;\n(b)\nexit 0 ;;\nesac\nwhile a; do\nexit 0\ndone >/x\nexit\n", 9},
      {"cat <<EOF >/x\nexit 0\nEOF\na <<< b\nexit 0\n", 5},
      {"cat <<-'END'\nexit 0\n\tEND\nfoo \\\nexit\nexit\n", 6},
      {"echo $((1<<3))\nexit 0\n", 2},
      {"echo it\\'s\nexit\n", 2},
      {"{ a; b; }\nexit\n", 2},
  };
  for (const auto& [script, line] : scripts) {
    INFO(script);
    CHECK(ending_line(script) == line);
  }
}

TEST_CASE("what cannot be read as a script ends somewhere") {
  for (const auto* script : {"'", "\"a\n", "\\", "a\\", "<<", "<<-", "<<<", "a <<'", "((((", "))))", "fi fi }\nexit",
                             "#", "a\\\n", "<<EOF\n", "'\n\n", "a'\n'\n'"}) {
    INFO(script);
    const std::size_t lines = 1 + static_cast<std::size_t>(std::ranges::count(std::string_view(script), '\n'));
    for (const auto& command : shell_commands(script))
      CHECK((command.line >= 1 && command.line <= lines));
    CHECK(ending_line(script) <= lines);
  }
}
