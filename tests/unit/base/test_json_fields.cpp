#include "base/json_fields.hpp"

#include "base/result.hpp"
#include "support/catch.hpp"

#include <chrono>

using namespace sharefs;
using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;

namespace {

struct Inner {
  std::uint64_t device = 0;
  std::optional<std::uint32_t> uid = {};
  friend bool operator==(const Inner&, const Inner&) = default;
};
template <FieldsOf<Inner> I> auto fields(I& i) {
  return named("device", i.device, "uid", i.uid);
}

struct Outer {
  std::string path;
  std::optional<std::string> before;
  std::uint32_t mode = 0644;
  std::optional<std::uint32_t> mode_after;
  std::vector<Inner> list;
  Inner inside, beside;
  std::chrono::milliseconds took{0};
  bool done = false;
  friend bool operator==(const Outer&, const Outer&) = default;
};
template <FieldsOf<Outer> O> auto fields(O& o) {
  return named("path", o.path, "before", o.before, "mode", o.mode, "mode_after", o.mode_after, "list", o.list, "",
               o.inside, "beside", o.beside, "took_ms", o.took, "done", o.done);
}

std::string text(const Outer& outer, JsonTexts texts = JsonTexts::exact) {
  return json_of(outer, texts).dump();
}

/// The name of the field that is malformed, "" for none.
std::string wrong(const char* json) {
  Outer outer;
  const char* name = read_fields(Json::parse(json), outer);
  return name == nullptr ? "" : name;
}

} // namespace

TEST_CASE("fields as JSON") {
  CHECK(text({"/a", std::nullopt, 0640, 02775U, {{7, 1U}}, {}, {}, 5ms, true}) ==
        R"({"path":"/a","before":null,"mode":"0640","mode_after":"2775","list":[{"device":7,"uid":1}],)"
        R"("took_ms":5,"done":true})");
  // The fields of one without a name stand among the others; one that is as it is by default is left out.
  CHECK(text({"", "", 0, std::nullopt, {}, {3, {}}, {4, 0U}, 0ms, false}) ==
        R"({"path":"","before":"","mode":"0000","mode_after":null,"list":[],"device":3,"uid":null,)"
        R"("beside":{"device":4,"uid":0},"took_ms":0,"done":false})");
  CHECK(json_of(Error{ErrorCode::busy, "m\xff", "h", ""}).dump() ==
        "{\"code\":\"busy\",\"message\":\"m\xef\xbf\xbd\",\"hint\":\"h\",\"context\":\"\"}");
}

TEST_CASE("fields come back from JSON, byte for byte") {
  const Outer outer{"/\xff", "\0x", 04755, 0U, {{~0ULL, {}}, {1, 2U}}, {9, 8U}, {7, {}}, -3ms, true};
  Outer back;
  CHECK(read_fields(json_of(outer, JsonTexts::exact), back) == nullptr);
  CHECK(back == outer);
}

TEST_CASE("a field that is missing keeps its default, a malformed one is named") {
  Outer outer;
  CHECK(read_fields(Json::parse(R"({"done": true, "unknown": 1})"), outer) == nullptr);
  Outer expected;
  expected.done = true;
  CHECK(outer == expected);
  CHECK(wrong(R"({"mode": 420})").empty()); // as a number, too
  CHECK(wrong(R"({"mode": "99"})") == "mode");
  CHECK(wrong(R"({"mode": -1})") == "mode");
  CHECK(wrong(R"({"path": 1})") == "path");
  CHECK(wrong(R"({"path": {"base64": "%"}})") == "path");
  CHECK(wrong(R"({"list": {}})") == "list");
  CHECK(wrong(R"({"list": [{"uid": 4294967296}]})") == "list");
  CHECK(wrong(R"({"device": "7"})") == "device");
  CHECK(wrong(R"({"beside": 1})") == "beside");
  CHECK(wrong(R"({"took_ms": 1.5})") == "took_ms");
  CHECK(wrong(R"({"done": 0})") == "done");
}
