#include "base/json.hpp"
#include "conda/generation.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

using namespace sharefs;
using namespace sharefs::conda;

namespace {

Generation sample() {
  Generation one;
  one.number = 3;
  one.parent = 2;
  one.created = 1'769'860'800;
  one.user = "alice";
  one.host = "node1";
  one.command = "pip install 'x<2'";
  one.message = "for the paper";
  one.prefix = "/data/share/conda/llm";
  one.python = "3.11.9";
  one.files = 20'625;
  one.bytes = 4'000'000'000;
  one.own_bytes = 12;
  one.no_guard = true;
  one.packages = {{"numpy", "1.26.4", "py311_0"}, {"torch", "2.4.0", "", true}};
  one.original = {"/home/a/envs/llm", "/home/a/envs/llm.sharefs-backup-20261124-103000", 77};
  return one;
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("a generation's record is read as it was written") {
  const auto read = parse_generation(format_generation(sample()));
  REQUIRE(read);
  CHECK(*read == sample());
}

TEST_CASE("a record that others have written does no harm") {
  const auto text = format_generation(sample());
  for (const auto* wrong : {"", "{", "[]", "null", "{\"sharefs\": 1}", "\xff\xfe"})
    CHECK(parse_generation(wrong).error().code == ErrorCode::failed);
  CHECK(parse_generation(changed(text, "\"number\": 3", "\"number\": \"3\"")).error().code == ErrorCode::failed);
  CHECK(parse_generation(changed(text, "\"sharefs\": 1", "\"sharefs\": 2")).error().code == ErrorCode::unsupported);
  const auto escape = parse_generation(changed(text, "for the paper", "\\u001b[31mred\\n"));
  REQUIRE(escape);
  CHECK(escape->message == " [31mred ");
  auto bytes = sample();
  bytes.message = "\xff";
  CHECK(parse_generation(format_generation(bytes)));
}

TEST_CASE("an original is kept beside the place where it was, and nowhere else") {
  for (const auto* kept : {"/home/b/envs/llm.sharefs-backup-20261124-103000", "/home/a/envs/other", "/home/a/envs/llm",
                           "/home/a/envs/other.sharefs-backup-20261124-103000"}) {
    auto forged = sample();
    forged.original.kept = kept;
    CHECK(parse_generation(format_generation(forged))->original == Original{});
  }
  for (const std::string path : {"/home/a/../b/envs/llm", "home/a/envs/llm", "/home/a//envs/llm"}) {
    auto forged = sample();
    forged.original = {path, path + ".sharefs-backup-20261124-103000", 77};
    CHECK(parse_generation(format_generation(forged))->original == Original{});
  }
}

TEST_CASE("numbers in a record are whole, and small enough to compute with") {
  const auto text = format_generation(sample());
  for (const auto* key : {"number", "parent", "created", "files", "bytes", "own_bytes"})
    for (const auto* wrong :
         {"-1", "1.5", "1e300", "18446744073709551615", "18446744073709551616", "true", "null", "[]"}) {
      auto json = nlohmann::json::parse(text);
      json[key] = nlohmann::json::parse(wrong);
      INFO(key << ": " << wrong);
      CHECK(parse_generation(json.dump()).error().code == ErrorCode::failed);
    }
  CHECK_FALSE(parse_generation(changed(text, "\"parent\": 2", "\"parent\": 10000")));
}

TEST_CASE("a long command makes no record that cannot be read again, and long names fill no screen") {
  auto one = sample();
  one.command = std::string(3U << 20U, '\x01');
  one.message = std::string(3U << 20U, '\xff');
  const auto read = parse_generation(format_generation(one));
  REQUIRE(read);
  CHECK(read->command == std::string(16'384, ' '));
  const auto forged =
      parse_generation(changed(format_generation(sample()), "\"alice\"", '"' + std::string(1U << 20U, 'a') + '"'));
  REQUIRE(forged);
  CHECK(forged->user.size() == 255);
}

TEST_CASE("a forged record costs no more than its bytes") {
  std::string members = "{\"sharefs\": 1";
  for (std::size_t i = 0; members.size() < k_largest_record - 32; ++i)
    members += fmt::format(",\"{:x}\":0", i);
  // Not by the clock: a type that looks through all members for each takes minutes, which no test waits for.
  CHECK(parse_generation(members + "}").error().message == "holds an object with more than 100 members");
  std::string lists = "{\"packages\": [";
  while (lists.size() < k_largest_record - 32)
    lists += "[],";
  CHECK(parse_generation(lists + "[]]}").error().message == "holds more than 200000 values");
  CHECK(parse_generation(std::string(k_largest_record + 1, ' ')).error().message == "is larger than 4.0 MiB");
  CHECK(parse_generation(std::string(1'000'000, '[')).error().message == "is nested deeper than 8");
}

TEST_CASE("requirement 4: how long a note counts") {
  constexpr std::int64_t k_now = 1'800'000'000, k_day = 86'400;
  Use use{"node1", 12, 1, 3};
  use.uid = 1003;
  for (const auto& [noted, fresh] : {std::pair(k_now, true),
                                     {k_now - (k_note_days - 1) * k_day, true},
                                     {k_now - (k_note_days + 1) * k_day, false},
                                     {k_now + k_day / 2, true},
                                     {k_now + 2 * k_day, false},
                                     {std::int64_t{0}, false},
                                     {INT64_MAX, false}}) {
    use.noted = noted;
    CHECK(is_fresh(use, k_now) == fresh);
  }
  CHECK(text_of(use) == "process 12 on node1");
  use.user = "carol";
  CHECK(text_of(use) == "process 12 on node1, by a note of carol");
}

TEST_CASE("who may use an environment may note it, and nobody else") {
  CHECK(uses_mode(02775) == 01777);
  CHECK(uses_mode(0755) == 01777);
  CHECK(uses_mode(02770) == 01770);
  CHECK(uses_mode(0750) == 01770);
  CHECK(uses_mode(0700) == 01700);
  CHECK(uses_mode(0771) == 01770);
}

TEST_CASE("changes of packages: added, removed, changed; pip's beside conda's") {
  const std::vector<Package> before{{"a", "1", "0"}, {"b", "1", "0"}, {"c", "1", "0"}, {"d", "1", "", true}};
  const std::vector<Package> after{{"b", "1", "1"}, {"c", "1", "0"}, {"d", "1", "0"}, {"e", "2", "", true}};
  const auto changes = package_changes(before, after);
  CHECK(changes == std::vector<PackageChange>{
                       {"a", "1 0", ""}, {"b", "1 0", "1 1"}, {"d", "", "1 0"}, {"d", "1", ""}, {"e", "", "2"}});
  CHECK(summary_of(changes) == "+2 -2 ~1");
  CHECK(summary_of(package_changes(after, after)).empty());
}

TEST_CASE("packages by the names of their records and directories") {
  CHECK(package_of_record("ca-certificates-2024.7.4-hbcca054_0.json") ==
        Package{"ca-certificates", "2024.7.4", "hbcca054_0"});
  for (const auto* wrong : {"history", "a.json", "a-1.json", "-1-0.json", "--.json", ".json", ""})
    CHECK_FALSE(package_of_record(wrong));
  CHECK(package_of_distribution("nvidia_nccl_cu12-2.20.5.dist-info") ==
        Package{"nvidia_nccl_cu12", "2.20.5", "", true});
  for (const auto* wrong : {"numpy", "numpy.dist-info", "-1.dist-info", ".dist-info", ""})
    CHECK_FALSE(package_of_distribution(wrong));
}

TEST_CASE("requirement 3: names of generations, and what is none") {
  CHECK(generation_name(1) == "0001");
  CHECK(generation_number("0042") == 42U);
  for (const auto* wrong : {"", "0", "0000", "1", "00001", "10000", "-001", "+001", " 001", "001a", "0001.json"})
    CHECK_FALSE(generation_number(wrong));
  CHECK(generation_path("/s", "llm", 7) == "/s/.generations/llm/0007");
  CHECK(generation_link("llm", 7) == ".generations/llm/0007");
  CHECK(linked_generation("llm", ".generations/llm/0007") == 7U);
  for (const auto* wrong : {"", "/", "0007", ".generations/llm/0007/", ".generations/llm2/0007", ".generations/llm/7",
                            "./.generations/llm/0007", "/s/.generations/llm/0007", ".generations/llm/../x/0007"})
    CHECK_FALSE(linked_generation("llm", wrong));
  CHECK(unfinished_generation("new-0004.abc123") == 4U);
  CHECK(unfinished_generation("old-0001.abc123") == 1U);
  for (const auto* wrong : {"new-0004", "new-0004.", "new-0004.abc1234", "new-0000.abc123", "tmp-0004.abc123", "0004"})
    CHECK_FALSE(unfinished_generation(wrong));
}

TEST_CASE("requirement 4: the name of a use says all of it") {
  const Use use{"node1.cluster.local", 4711, 123'456'789'012, 3};
  CHECK(use_name(use) == "node1.cluster.local.4711.123456789012.0003");
  CHECK(parse_use(use_name(use)) == use);
  for (const auto* wrong : {"", "...", "node1.1.2", ".1.2.0003", "node1.0.2.0003", "node1.-1.2.0003", "node1.1.2.3",
                            "node1.1.x.0003", "node1.99999999999.2.0003"})
    CHECK_FALSE(parse_use(wrong));
  CHECK(parse_use("a\x1b[31m.1.2.0003")->host == "a [31m");
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
