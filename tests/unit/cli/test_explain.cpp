// The pages of docs/diagnoses as the program has them.
#include "cli/commands/explain/pages.hpp"
#include "support/catch.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

using namespace sharefs::cli;

TEST_CASE("a section of a page, in its parts") {
  const auto found = parse_page("# Page\nnot this\n\n## SF999 a title: with more\nLine one\nand two.\nUsual cause: x.\n"
                                "See: `sharefs status`.\nCure: do\nthis.\nsharefs: waits.\n\n## SF998 next\nwhy\n");
  REQUIRE(found.size() == 2);
  CHECK(found[0] == Explanation{"SF999", "a title: with more", "Line one and two.", "x.", "`sharefs status`.",
                                "do this.", "waits."});
  CHECK(found[1].code == "SF998");
  CHECK(found[1].cause == "why");
  CHECK(parse_page("").empty());
  CHECK(parse_page("## ").size() == 1);
}

TEST_CASE("every section of docs/diagnoses is compiled in, whole") {
  // From the build directory's parent to the source tree: __FILE__ may be relative to it.
  auto root = std::filesystem::absolute(std::filesystem::path(__FILE__)).parent_path();
  while (!std::filesystem::exists(root / "docs/diagnoses") && root.has_relative_path())
    root = root.parent_path();
  std::set<std::string> written;
  const std::regex section("^## (SF[0-9]{3}) ");
  for (const auto& page : std::filesystem::directory_iterator(root / "docs/diagnoses")) {
    std::ifstream file(page.path());
    for (std::string line; std::getline(file, line);)
      if (std::smatch match; std::regex_search(line, match, section))
        written.insert(match[1]);
  }
  REQUIRE(written.size() > 100);
  std::set<std::string> known;
  for (const auto& one : explanations()) {
    CHECK(known.insert(one.code).second);
    INFO(one.code);
    CHECK_FALSE(one.title.empty());
    CHECK_FALSE(one.cause.empty());
    CHECK_FALSE(one.see.empty());
    CHECK_FALSE(one.cure.empty());
    CHECK_FALSE(one.does.empty());
  }
  CHECK(known == written);
}
