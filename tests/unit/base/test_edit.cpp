#include "base/edit.hpp"

#include "support/catch.hpp"

using namespace sharefs;

TEST_CASE("edits make a content of another, and back", "[edit]") {
  const std::string before = "one two three";
  const Edits edits{{0, "one", "1"}, {4, "two", "zwei"}, {13, "", "!"}};
  const auto after = apply_edits(before, edits);
  REQUIRE(after == "1 zwei three!");
  CHECK(apply_edits(*after, invert_edits(edits)) == before);
  CHECK(apply_edits(before, {}) == before);
}

TEST_CASE("the difference of two contents", "[edit]") {
  const std::string zeros(200, '0');
  const auto pairs = std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                                      {"a", ""},
                                                                      {"", "a"},
                                                                      {"same", "same"},
                                                                      {"aaa", "aa"},
                                                                      {"abcabc", "abc"},
                                                                      {"x1y2z", "x3y4z"},
                                                                      {"1" + zeros + "2", "3" + zeros + "4"},
                                                                      {zeros + "1", zeros + "2"},
                                                                      {"head old tail", "head newer tail"}};
  for (const auto& [before, after] : pairs) {
    INFO(before << " -> " << after);
    const auto edits = find_edits(before, after);
    CHECK(apply_edits(before, edits) == after);
    CHECK(apply_edits(after, invert_edits(edits)) == before);
  }
  CHECK(find_edits("1" + zeros + "2", "3" + zeros + "4") == Edits{{0, "1", "3"}, {201, "2", "4"}});
}

TEST_CASE("edits of another content are refused", "[edit]") {
  CHECK_FALSE(apply_edits("one", {{0, "two", "x"}}));
  CHECK_FALSE(apply_edits("one", {{4, "", "x"}}));
  CHECK_FALSE(apply_edits("one", {{2, "ex", "x"}}));
  CHECK_FALSE(apply_edits("aaaa", {{0, "aaa", "x"}, {2, "aa", "y"}}));
  CHECK_FALSE(apply_edits("aaaa", {{2, "a", "x"}, {0, "a", "y"}}));
}
