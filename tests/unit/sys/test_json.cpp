#include "sys/json.hpp"

#include "support/catch.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

template <class T> T there_and_back(const T& value) {
  // Through text, as in a file.
  return json::parse(json(value).dump()).template get<T>();
}

} // namespace

TEST_CASE("values survive the way through JSON") {
  const Error error{ErrorCode::conflict, "m", "h", "c"};
  CHECK(there_and_back(error) == error);
  const User user{"u", 1, 2, {2, 3}, "/h"};
  CHECK(there_and_back(user) == user);
  const Identity identity{"host", "boot", 1, 2, "u", "/h", 3, true, {"10.0.0.1", "fd00::1"}};
  CHECK(there_and_back(identity) == identity);
  const Completed completed{137, true, true, "out\xff\x80z", "err\n", 5ms};
  CHECK(there_and_back(completed) == completed);
  CHECK(there_and_back(Completed{0, false, false, "", "", 0ms}) == Completed{0, false, false, "", "", 0ms});
  const PathProbe probe{PathHealth::full, 28, "write: no space", 7us, 1, 2, 3, 4};
  CHECK(there_and_back(probe) == probe);
  PathFact fact;
  fact.kind = PathKind::file;
  fact.mode = 04755;
  fact.uid = 1;
  fact.gid = 2;
  fact.size = 3;
  fact.device = 4;
  fact.inode = 5;
  fact.links = 6;
  fact.mtime = -7;
  fact.content = std::string("a\0\xfe", 3);
  fact.entries = {"a", "\xff"};
  fact.link_target = "\x80";
  CHECK(there_and_back(fact) == fact);
  fact = PathFact();
  fact.kind = PathKind::missing;
  fact.error_number = 2;
  CHECK(there_and_back(fact) == fact);
  NfsProbe nfs;
  nfs.host = "h";
  nfs.address = "a";
  nfs.v3 = true;
  nfs.took = 9ms;
  nfs.stages = {{ProbeStage::access, StageOutcome::absent, 3us, "d", "c", "h"}};
  nfs.exports = {{"/d", {"*", "10.0.0.0/8"}}, {"/e", {}}};
  nfs.access = {{"/d", true, ""}, {"/e", false, "no"}};
  CHECK(there_and_back(nfs) == nfs);
}

TEST_CASE("every name of an enumeration is read back") {
  for (int i = 0; i <= static_cast<int>(PathHealth::failed); ++i) {
    PathProbe probe;
    probe.health = static_cast<PathHealth>(i);
    CHECK(there_and_back(probe).health == probe.health);
  }
  for (int i = 0; i <= static_cast<int>(ProbeStage::access); ++i)
    for (int j = 0; j <= static_cast<int>(StageOutcome::skipped); ++j) {
      NfsProbe probe;
      probe.stages = {{static_cast<ProbeStage>(i), static_cast<StageOutcome>(j), 0us, "", "", ""}};
      CHECK(there_and_back(probe) == probe);
    }
}

TEST_CASE("bytes that are no text") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte)
    all += static_cast<char>(byte);
  for (const std::string& bytes : {std::string(), std::string("caf\xc3\xa9"), std::string("\xff"), all})
    CHECK(bytes_from_json(json::parse(bytes_to_json(bytes).dump())) == bytes);
  CHECK(bytes_to_json("caf\xc3\xa9").is_string());
  CHECK_THROWS_AS(bytes_from_json(json(5)), json::exception);
}

TEST_CASE("times") {
  CHECK(format_time(parse_time("2026-01-01T00:00:00Z")) == "2026-01-01T00:00:00Z");
  CHECK(format_time(parse_time("2024-02-29T23:59:59Z")) == "2024-02-29T23:59:59Z");
  for (const char* text : {"", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00Zx"})
    CHECK_THROWS_AS(parse_time(text), std::invalid_argument);
}
