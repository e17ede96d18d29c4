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

TEST_CASE("nobody else may own the place of the generations where names cannot be replaced", "[conda]") {
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
      {0, 0777, 1001, 0755, false}, // STORE/ENV could be replaced as well
      {0, 02775, 1001, 02775, false},
      {0, 03775, 1001, 02775, true},
  }));
  const auto found = diagnose_places(directory("/data", row.store_uid, row.store_mode),
                                     {directory("/data/.generations", row.uid, row.mode), {}}, k_self);
  INFO(row.store_mode << ' ' << row.uid << ' ' << row.mode);
  CHECK(found.size() == (row.refused ? 1 : 0));
  CHECK(has_errors(found) == row.refused);
}

TEST_CASE("attack: what others have put into an environment is refused by name", "[conda]") {
  auto facts = source_with(1, 1);
  facts.space.reset();
  facts.state.uid = 1001;
  facts.state.mode = 0755;
  const auto codes = [&] {
    std::string found;
    for (const auto& one : preflight(facts))
      if (one.severity == Severity::error)
        found += one.code + ": " + one.message + "\n";
    return found;
  };
  CHECK(codes().empty());
  facts.state.found = {{Kind::closed, "private", "0600"}};
  CHECK(codes().empty()); // SF525: the owner's own
  facts.state.others_write = true;
  CHECK(codes() == "SF532: 1 path that not everybody can read, where others could have put private files of its owner: "
                   "private\n");
  facts.state.found = {{Kind::foreign, "a", "uid 0"},
                       {Kind::foreign, "b", "uid 1002"},
                       {Kind::foreign, "c", "uid 0"},
                       {Kind::foreign, "d", "uid 0"}};
  CHECK(codes() == "SF531: 4 paths of another user than the owner of the environment: a (uid 0), b (uid 1002), c (uid "
                   "0) and 1 more\n");
}

TEST_CASE("attack: what was put there after the look is neither copied nor opened", "[conda]") {
  EnvironmentState of;
  of.path = "/home/alice/env";
  of.uid = 1001;
  of.mode = 0755;
  of.others_write = GENERATE(false, true);
  const auto copied = admit_copied(of);
  const auto opened = admit_opened(of, 02555);
  const auto file = [](uid_t uid, mode_t mode) {
    struct stat status{};
    status.st_uid = uid;
    status.st_mode = mode;
    return status;
  };
  CHECK((copied("x", file(1001, S_IFREG | 0644)) && opened("x", file(1001, S_IFREG | 0644))));
  CHECK((copied("x", file(1001, S_IFDIR | 0755)) && copied("x", file(1001, S_IFLNK | 0777))));
  const auto refused = copied("x", file(0, S_IFREG | 0644));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "/home/alice/env/x: belongs to uid 0, not to the owner of the environment, and is not shared");
  CHECK(opened("x", file(0, S_IFREG | 0644)).has_value()); // everybody reads it already
  CHECK_FALSE(opened("x", file(0, S_IFREG | 0600)));
  CHECK_FALSE(opened("x", file(1002, S_IFDIR | 0700)));
  // The owner's own private file, which somebody else can have renamed into it.
  CHECK(copied("x", file(1001, S_IFREG | 0600)).has_value() == !of.others_write);
  CHECK(opened("x", file(1001, S_IFREG | 0600)).has_value() == !of.others_write);
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

TEST_CASE("a directory that was moved aside already keeps its name", "[conda]") {
  Sharing sharing;
  sharing.source.path = "/home/alice/envs/llm";
  sharing.source.entry = directory("/home/alice/envs/llm.sharefs-backup-20260101-000000", 1001, 0755);
  sharing.source.entry.inode = 7;
  CHECK(original_of(sharing) == Original{"/home/alice/envs/llm", sharing.source.entry.path, 7});
  sharing.source.entry.path = sharing.source.path;
  CHECK(original_of(sharing).kept != sharing.source.path);
}

TEST_CASE("a directory that cannot be replaced by a link is no environment to copy", "[conda]") {
  auto facts = source_with(1, 1);
  CHECK(preflight(facts).empty());
  facts.fixed = "it is a mount point";
  REQUIRE(preflight(facts).size() == 1);
  CHECK(preflight(facts)[0].code == "SF526");
  CHECK(has_errors(preflight(facts)));
}
