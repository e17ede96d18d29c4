#include "conda/environment_name.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::conda;

TEST_CASE("environment names", "[conda]") {
  struct Row {
    std::string name;
    bool good;
  };
  const std::vector<Row> rows{
      {"llm_train", true},
      {"py3.11", true},
      {"a-b+c", true},
      {"umgebung\xc3\xa4", true},
      {"bases", true},
      {"", false},
      {"base", false},
      {"root", false},
      {".", false},
      {"..", false},
      {".hidden", false},
      {"-n", false},
      {"a/b", false},
      {"a b", false},
      {"a:b", false},
      {"a#b", false},
      {"a\\b", false},
      {"a\nb", false},
      {"a\x7f", false},
      {"a\xff", false},
      {"x.sharefs-backup-20260101-000000", false},
      {std::string(200, 'x'), true},
      {std::string(201, 'x'), false},
  };
  for (const auto& row : rows) {
    CAPTURE(row.name);
    const auto sound = check_environment_name(row.name);
    CHECK(sound.has_value() == row.good);
    if (!sound) {
      CHECK(sound.error().code == ErrorCode::usage);
    }
  }
  CHECK(check_environment_name("base").error().message.find("installation itself") != std::string::npos);
  CHECK(check_environment_name("base").error().hint.find("--clone") != std::string::npos);
}

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
