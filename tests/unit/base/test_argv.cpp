#include "base/argv.hpp"
#include "support/catch.hpp"

#include <array>
#include <cstdio>
#include <sys/wait.h>

using namespace sharefs;

TEST_CASE("shell_quote leaves plain words alone and quotes the rest", "[argv]") {
  CHECK(shell_quote("--cache_dir=/data/x_1.2") == "--cache_dir=/data/x_1.2");
  CHECK(shell_quote("") == "''");
  CHECK(shell_quote("a b") == "'a b'");
  CHECK(shell_quote("it's") == R"('it'\''s')");
  CHECK(shell_quote("~/x") == "'~/x'");
  CHECK(shell_quote("=ls") == "'=ls'");
  CHECK(shell_quote("*.py") == "'*.py'");
  CHECK(shell_quote("a\nb") == R"($'a\nb')");
  CHECK(shell_quote("\x1b[31m") == R"($'\033[31m')");
  CHECK(shell_quote("\xff") == R"($'\377')");
  CHECK(shell_quote("größe") == "'größe'");
}

TEST_CASE("shell_join: the first word is never read as an assignment", "[argv]") {
  CHECK(shell_join({"env", "A=b", "x"}) == "env A=b x");
  CHECK(shell_join({"A=b", "x"}) == "'A=b' x");
  CHECK(shell_join({}).empty());
}

TEST_CASE("bash reads back exactly the bytes that were quoted", "[argv]") {
  Argv words{"",     " ",      "'",        "\"", "\\", "$HOME", "`id`", "!x",
             "a\tb", "a\nb\n", "\x01\x7f", "#c", "~",  "{a,b}", "ä",    "\\n'"};
  std::string every_byte;
  for (int c = 1; c < 256; ++c)
    every_byte += static_cast<char>(c);
  words.push_back(every_byte);

  // The shell is the reference here, not a part of the program.
  std::string expected;
  for (const auto& word : words)
    expected += word + '\x02' + '\n';
  Argv command{"printf", "%s\\002\\n"};
  command.insert(command.end(), words.begin(), words.end());
  const std::string line = "exec bash -c " + shell_quote(shell_join(command).replace(0, 0, "LC_ALL=C "));
  std::FILE* pipe = popen(("bash <<'SHAREFS_END'\n" + line + "\nSHAREFS_END\n").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string got;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    got.append(buffer.data(), n);
  CHECK(WEXITSTATUS(pclose(pipe)) == 0);
  CHECK(got == expected);
}
