#include "conda/backup_name.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::conda;

TEST_CASE("backup names", "[conda]") {
  const auto when = std::chrono::system_clock::from_time_t(1767225600 + 3661);
  CHECK(backup_name("llm", when) == "llm.sharefs-backup-20260101-010101");

  const std::vector<std::string> entries{
      "llm",
      "llm.sharefs-backup-20251231-235959",
      "llm.sharefs-backup-20260101-010101",
      "llm.sharefs-backup-20270101-01010x",  // not a time
      "llm.sharefs-backup-20270101-0101011", // too long
      "llm2.sharefs-backup-20280101-000000", // of another one
      "my-llm.sharefs-backup-20280101-000000",
  };
  CHECK(newest_backup(entries, "llm") == "llm.sharefs-backup-20260101-010101");
  CHECK(newest_backup(entries, "llm2") == "llm2.sharefs-backup-20280101-000000");
  CHECK(newest_backup(entries, "ll").empty());
  CHECK(newest_backup({}, "llm").empty());
}
