#include "base/json.hpp"

#include "support/catch.hpp"

using namespace sharefs;

TEST_CASE("JSON within its limits is read") {
  const auto json =
      read_json(R"({"a": [1, "],{[\"", {}], "b": -1})", {.bytes = 100, .depth = 3, .values = 6, .members = 2});
  REQUIRE(json);
  CHECK(json->at("a").size() == 3);
  CHECK(find_json_excess("", {.bytes = 0}).empty());
  CHECK(read_json("", {.bytes = 0}).error().message == "is no JSON that can be read");
}

TEST_CASE("JSON that has too much of anything is not parsed") {
  const auto why = [](std::string_view text, JsonLimits limits) { return find_json_excess(text, limits); };
  CHECK(why("[   ]", {.bytes = 4}) == "is larger than 4 B");
  CHECK(why("[[[]]]", {.bytes = 9, .depth = 2}) == "is nested deeper than 2");
  CHECK(why("[[],[],[]]", {.bytes = 99, .values = 5}) == "holds more than 5 values");
  CHECK(why(R"({"a":1,"b":2,"c":3})", {.bytes = 99, .members = 2}) == "holds an object with more than 2 members");
  CHECK(why("[1,2,3]", {.bytes = 99, .members = 2}).empty()); // elements are no members
  CHECK(why("]]}}[", {.bytes = 9, .depth = 1}).empty());
  CHECK(why(R"("\\",[[)", {.bytes = 9, .depth = 1}) == "is nested deeper than 1");
  CHECK(why(R"("\"[[[[)", {.bytes = 9, .depth = 1}).empty()); // a text without its end
  for (const auto* wrong : {"{", "\"\\", "[1", "\xff"})
    CHECK_FALSE(read_json(wrong, {.bytes = 9}));
}

TEST_CASE("a member of what others wrote may be missing, or something else") {
  const auto json = nlohmann::json::parse(R"({"text": "x", "list": [1], "none": null, "inner": {"text": "y"}})");
  CHECK(text_in(json, "text") == "x");
  CHECK(text_in(member(json, "inner"), "text") == "y");
  CHECK(member(json, "list").size() == 1);
  for (const auto* name : {"list", "none", "inner", "missing"})
    CHECK(text_in(json, name).empty());
  for (const auto* other : {"null", "1", "\"text\"", "[{\"text\": 1}]"}) {
    CHECK(member(nlohmann::json::parse(other), "text").is_null());
    CHECK(text_in(nlohmann::ordered_json::parse(other), "text").empty());
  }
}
