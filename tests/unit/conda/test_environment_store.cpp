// What others may have written beside the generations of an environment.
#include "conda/environment_store.hpp"

#include "conda/environment.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::conda;
namespace fs = std::filesystem;

namespace {

const std::string k_root = "s/.generations/llm/";

void make_generation(const test::TemporaryDirectory& root, unsigned number, unsigned parent) {
  Generation one;
  one.number = number;
  one.parent = parent;
  root.write(k_root + generation_name(number) + "/conda-meta/history", "");
  root.write(k_root + generation_name(number) + ".json", format_generation(one));
}

void make_shared(const test::TemporaryDirectory& root) {
  for (const unsigned number : {1U, 2U})
    make_generation(root, number, number - 1);
  fs::create_directory(root / (k_root + "uses"));
  fs::create_directory_symlink(".generations/llm/0002", root / "s/llm");
}

SharedEnvironment probed(test::ScriptedSystem& system) {
  auto found = probe_environment(system, "/s", "llm");
  REQUIRE(found);
  return std::move(*found);
}

} // namespace

TEST_CASE("a note of a use says whose it is, and nothing about numbers", "[conda]") {
  const test::TemporaryDirectory root;
  make_shared(root);
  test::ScriptedSystem system(root.path());
  root.write(k_root + "uses/elsewhere.1.1.0001", "");
  root.write(k_root + "uses/elsewhere.1.1.9999", ""); // no generation could be made any more
  fs::create_directory(root / (k_root + "uses/elsewhere.2.1.0001"));
  fs::create_symlink("/etc/passwd", root / (k_root + "uses/elsewhere.3.1.0001")); // a note, as `conda run` makes it
  REQUIRE(::mkfifo((root / (k_root + "uses/elsewhere.4.1.0001")).c_str(), 0600) == 0);
  const auto found = probed(system);
  CHECK(found.next() == 3);
  REQUIRE(found.uses.size() == 3);
  CHECK(found.uses[0].uid == ::geteuid());
  CHECK(found.uses[0].noted > 1'000'000'000);
  CHECK(found.unknown_uses.empty());
}

TEST_CASE("a record that was made from a later generation is none", "[conda]") {
  const test::TemporaryDirectory root;
  make_shared(root);
  make_generation(root, 2, 9'998);
  test::ScriptedSystem system(root.path());
  const auto found = probed(system);
  CHECK(found.next() == 3);
  CHECK_FALSE(found.generations[1].record);
  CHECK(found.generations[1].problem == "says that it was made from a later one");
}

TEST_CASE("where there are too many notes, not all uses are known", "[conda]") {
  const test::TemporaryDirectory root;
  make_shared(root);
  test::ScriptedSystem system(root.path());
  for (std::size_t i = 0; i <= k_most_uses; ++i)
    REQUIRE(::close(::creat((root / (k_root + "uses/x." + std::to_string(i + 1) + ".1.0001")).c_str(), 0644)) == 0);
  const auto found = probed(system);
  CHECK(found.uses.size() == k_most_uses);
  CHECK(found.unknown_uses == "/s/.generations/llm/uses holds more than 10000 notes");
}

TEST_CASE("many generations are read with less for each", "[conda]") {
  const test::TemporaryDirectory root;
  make_shared(root);
  constexpr unsigned k_many = 200;
  for (unsigned number = 3; number <= k_many; ++number)
    fs::create_directory(root / (k_root + generation_name(number)));
  const auto record = root / (k_root + "0003.json");
  root.write(k_root + "0003.json", "");
  fs::resize_file(record, k_all_records / k_many + 1); // sparse, and allowed where there are few generations
  for (unsigned number = 4; number <= k_many; ++number)
    fs::create_hard_link(record, root / (k_root + generation_name(number) + ".json"));
  test::ScriptedSystem system(root.path());
  const auto found = probed(system);
  CHECK(found.generations[1].record);
  std::size_t bytes = 0;
  for (const auto& one : found.generations)
    bytes += one.record_entry.content.size();
  CHECK(bytes <= k_all_records);
  CHECK(found.generations[2].problem == "is not read: it is larger than 328 KiB");
}

TEST_CASE("records that are no files are no records", "[conda]") {
  const test::TemporaryDirectory root;
  make_shared(root);
  fs::remove(root / (k_root + "0001.json"));
  fs::remove(root / (k_root + "0002.json"));
  REQUIRE(::mkfifo((root / (k_root + "0001.json")).c_str(), 0644) == 0);
  fs::create_symlink("/dev/zero", root / (k_root + "0002.json"));
  test::ScriptedSystem system(root.path());
  const auto found = probed(system);
  CHECK_FALSE(found.generations[0].record);
  CHECK(found.generations[0].problem.ends_with("0001.json: is a pipe, socket or device"));
  CHECK_FALSE(found.generations[1].record);
}

TEST_CASE("notes are judged by the server's clock while this process holds the lease") {
  const test::TemporaryDirectory root;
  test::ScriptedSystem system(root.path());
  SharedEnvironment environment;
  environment.held = 1'000;
  const auto own = std::chrono::system_clock::to_time_t(system.now());
  CHECK(time_of(system, environment) == own);
  environment.holder = sys::LeaseHolder{system.identity().hostname, "boot", system.identity().pid, 1, "", 0, ""};
  CHECK(time_of(system, environment) == 1'000);
  environment.holder->pid += 1;
  CHECK(time_of(system, environment) == own);
}

namespace {

/// Of an environment with one package.
Result<EnvironmentState> probe_with(const test::TemporaryDirectory& root) {
  root.write("llm/conda-meta/x-1-0.json", R"({"name": "x", "files": ["a"]})");
  root.write("llm/a", "");
  test::ScriptedSystem system(root.path());
  return probe(system, {.path = "/llm"}, nullptr);
}

} // namespace

TEST_CASE("records of packages have a bound for their size: many names of one large file", "[environment]") {
  const test::TemporaryDirectory root;
  const auto one = probe_with(root);
  REQUIRE(one);
  CHECK(one->packages == 1);
  const auto large = root / "llm/conda-meta/large-1-0.json";
  root.write("llm/conda-meta/large-1-0.json", "");
  fs::resize_file(large, 60U << 20U);
  for (int i = 0; i < 60; ++i)
    fs::create_hard_link(large, root / fmt::format("llm/conda-meta/l{}-1-0.json", i));
  const auto refused = probe_with(root);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::failed);
  CHECK(refused.error().message == "/llm: the records in its conda-meta are larger than 256 MiB");
  CHECK_FALSE(refused.error().hint.empty());
}

TEST_CASE("records of packages have a bound for the files that they name", "[environment][long]") {
  const test::TemporaryDirectory root;
  std::string names;
  for (int i = 0; i < 260'000; ++i)
    names += fmt::format("\"{:x}\",", i);
  const auto text = R"({"name": "y", "files": [)" + names + "\"z\"]}";
  for (int i = 0; i < 4; ++i)
    root.write(fmt::format("llm/conda-meta/y{}-1-0.json", i), text);
  const auto refused = probe_with(root);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "/llm: the records in its conda-meta name more than 1000000 files");
}

TEST_CASE("what is larger than it may be is listed, and not read", "[environment]") {
  const test::TemporaryDirectory root;
  root.write("llm/conda-meta/history", "");
  root.write("llm/lib/of-pip", "");
  ::mkfifo((root / "llm/lib/fifo").c_str(), 0644);
  for (int i = 0; i < 5; ++i) { // their sizes together are more than 64 bits hold, where a file may be as large
    root.write(fmt::format("llm/lib/hole{}", i), "");
    ::truncate((root / fmt::format("llm/lib/hole{}", i)).c_str(), i == 0 ? 100 : std::numeric_limits<off_t>::max());
  }
  test::ScriptedSystem system(root.path());
  const auto kinds = [&](std::uint64_t most) {
    const auto state = probe(system, {.path = "/llm", .most_bytes = most}, nullptr);
    REQUIRE(state);
    CHECK(state->bytes >= 100);
    std::set<Kind> found;
    for (const auto& one : state->found)
      found.insert(one.kind);
    return found;
  };
  CHECK(kinds(99) == std::set{Kind::special});
  if (fs::file_size(root / "llm/lib/hole1") == 0)
    CHECK(kinds(100) == std::set{Kind::special, Kind::unmanaged});
}

TEST_CASE("scripts name a bounded number of prefixes, for each of which all files are searched", "[environment]") {
  const test::TemporaryDirectory root;
  root.write("llm/conda-meta/history", "");
  for (int i = 0; i < 101; ++i)
    root.write(fmt::format("llm/bin/s{}", i), fmt::format("#!/old/e{}/bin/python\n", i));
  test::ScriptedSystem system(root.path());
  const auto refused = probe(system, {.path = "/llm"}, nullptr);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "/llm: the scripts in its bin name more than 100 prefixes of environments");
  fs::remove(root / "llm/bin/s0");
  CHECK(probe(system, {.path = "/llm"}, nullptr));
}
