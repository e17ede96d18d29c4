#include "conda/share.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::conda;

namespace {

sys::Entry directory(const std::string& path, std::uint32_t uid, std::uint32_t mode) {
  sys::Entry entry;
  entry.path = path;
  entry.kind = sys::EntryKind::directory;
  entry.uid = uid;
  entry.mode = mode;
  return entry;
}

Preflight source_with(std::uint64_t files, std::uint64_t bytes) {
  Preflight facts;
  facts.state.path = "/home/alice/env";
  facts.state.decision.right = "/data/env";
  facts.state.files = files;
  facts.state.bytes = bytes;
  facts.space = sys::Space{.size_bytes = 100U << 20U, .free_bytes = 8U << 20U, .files = 1000, .free_files = 50};
  return facts;
}

} // namespace

TEST_CASE("nobody else may own the place of the generations where names cannot be exchanged", "[conda]") {
  struct Row {
    std::uint32_t store_uid, store_mode, uid, mode;
    bool refused;
  };
  constexpr std::uint32_t k_self = 1000;
  const auto row = GENERATE(values<Row>({
      {0, 01777, 0, 0755, false},
      {0, 01777, 1001, 0755, true},
      {0, 01777, k_self, 0755, false},
      {0, 0755, 1001, 0755, true},
      {1001, 0755, 1001, 0755, false},
      {0, 01777, 0, 0777, true},
      {0, 01777, 0, 01777, false},
      {0, 0777, 1001, 0755, false}, // STORE/ENV could be exchanged as well
      {0, 02775, 1001, 02775, false},
      {0, 03775, 1001, 02775, true},
  }));
  const auto found = diagnose_places(directory("/data", row.store_uid, row.store_mode),
                                     {directory("/data/.generations", row.uid, row.mode), {}}, k_self);
  INFO(row.store_mode << ' ' << row.uid << ' ' << row.mode);
  CHECK(found.size() == (row.refused ? 1 : 0));
  CHECK(has_errors(found) == row.refused);
}

TEST_CASE("requirement 10: a copy that was cut off needs room for the rest only", "[conda]") {
  constexpr std::uint64_t k_mib = 1U << 20U;
  auto facts = source_with(60, 13 * k_mib);
  CHECK(preflight(facts).size() == 2);
  facts.copied.files = 20;
  facts.copied.bytes = 6 * k_mib;
  CHECK(preflight(facts).empty());
  facts.copied.files = 1;
  REQUIRE(preflight(facts).size() == 1);
  CHECK(preflight(facts)[0].message ==
        "59 files of it are still to be copied, and the store can take 50 more (inodes)");
}

TEST_CASE("what cannot be copied is known before", "[conda]") {
  auto facts = source_with(1, 1);
  facts.state.found.push_back({Kind::special, "share/pipe", "a FIFO"});
  const auto found = preflight(facts);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF530");
  CHECK(found[0].severity == Severity::error);
}
