// What is taken down is answered again, to the byte; what is not there is named; a stranger's file is refused.
#include "sys/recorded_system.hpp"

#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <fstream>

using namespace sharefs;
using namespace sharefs::sys;

namespace {

Command command(Argv argv) {
  Command one;
  one.argv = std::move(argv);
  return one;
}

std::string as_it_is(const std::string& text) {
  return text;
}

std::shared_ptr<Recording> read_again(const Recording& recording) {
  auto read = Recording::parse(recording.text(as_it_is));
  REQUIRE(read);
  return *read;
}

} // namespace

TEST_CASE("a machine is the same when it is replayed") {
  const test::TemporaryDirectory root;
  std::ofstream(root / "file") << "bytes \xff\x01\x80 and \"quotes\"\n";
  std::ofstream(root / "own") << "mine";
  test::ScriptedSystem machine(root.path());
  machine.machine.identity.hostname = "node1";
  machine.machine.identity.addresses = {"10.0.0.2", "fd00::2"};
  machine.machine.add_mount("storage1:/srv", "/data", "nfs4", "rw,vers=4.2");
  machine.machine.nfs["storage1"] = test::nfs_server("storage1", "/srv", {"*"});
  machine.machine.users.push_back({"alice", 1000, 1000, {1000, 3000}, "/home/alice"});
  machine.machine.on_run = [](const Command&) -> Result<Completed> {
    return Completed{3, false, true, "out", "err", std::chrono::milliseconds(7)};
  };
  EntryRequest request;
  request.queries = {
      {.path = "/file", .read_bytes = 100, .space = true}, {.path = "/none"}, {.path = "/", .list = true}};
  const auto recording = std::make_shared<Recording>();
  RecordedSystem seen(&machine, recording);

  const auto entries = seen.entries(request);
  const auto table = seen.mounts();
  const auto identity = seen.identity();
  const auto probe = seen.probe_nfs({.host = "storage1", .paths = {}});
  const auto alice = seen.user("alice"), nobody = seen.user("nobody");
  const auto now = seen.now();
  const auto completed = seen.run(command({"tool", "word"}));
  const auto content = seen.files().read("/file");
  const auto trusted = seen.files().read_trusted("/own");
  const auto names = seen.files().list("/");

  RecordedSystem again(nullptr, read_again(*recording));
  CHECK(again.entries(request) == entries);
  CHECK(entries[0].content == "bytes \xff\x01\x80 and \"quotes\"\n");
  REQUIRE(again.mounts());
  CHECK(again.mounts()->entries() == table->entries());
  CHECK(again.identity() == identity);
  CHECK(again.probe_nfs({.host = "storage1", .paths = {}}) == probe);
  CHECK(again.user("alice") == alice);
  REQUIRE_FALSE(nobody);
  CHECK(again.user("nobody") == nobody);
  CHECK(again.now() == now);
  CHECK(again.run(command({"tool", "word"})) == completed);
  CHECK(again.files().read("/file") == content);
  CHECK(again.files().read_trusted("/own") == trusted);
  CHECK(again.files().list("/") == names);
}

TEST_CASE("answers to one question come in their order, and the last again") {
  Recording first;
  for (const int number : {1, 2})
    REQUIRE(first.ask("count", std::string(), [&]() -> Result<int> { return number; }));
  const auto again = read_again(first);
  const auto never = []() -> Result<int> {
    FAIL("this machine was looked at");
    return 0;
  };
  for (const int number : {1, 2, 2})
    CHECK(again->ask("count", std::string(), never).value_or(0) == number);
}

TEST_CASE("what was not asked is named, and this machine not looked at") {
  const Recording empty;
  const auto recording = read_again(empty);
  RecordedSystem system(nullptr, recording);
  const auto entry = system.entry({.path = "/etc/passwd", .read_bytes = 100});
  CHECK(entry.kind == EntryKind::unknown);
  CHECK(entry.error().message.find("/etc/passwd") != std::string::npos);
  CHECK(entry.content.empty());
  CHECK_FALSE(system.files().read("/etc/passwd"));
  CHECK_FALSE(system.files().read_trusted("/etc/passwd"));
  CHECK_FALSE(system.mounts());
  const auto probe = system.probe_nfs({.host = "127.0.0.1", .paths = {}});
  CHECK_FALSE(probe.usable());
  CHECK(system.run(command({"true"})).error().code == ErrorCode::unsupported);
  CHECK(recording->unanswered().size() == 6);
}

TEST_CASE("nothing is changed for a recording") {
  const test::TemporaryDirectory root;
  test::ScriptedSystem machine(root.path());
  RecordedSystem seen(&machine, std::make_shared<Recording>());
  CHECK(seen.files().write_if("/new", std::nullopt, "x").error().code == ErrorCode::unsupported);
  CHECK(seen.mount({}).error().code == ErrorCode::unsupported);
  CHECK(seen.unmount({}).error().code == ErrorCode::unsupported);
  CHECK(seen.run_worker({}).error().code == ErrorCode::unsupported);
  CHECK(seen.exec({"true"}, {}).code == ErrorCode::unsupported);
  CHECK(machine.calls().empty());
}

TEST_CASE("a file that is no recording is refused with its line") {
  const std::string head = "{\"sharefs-recording\":1}\n";
  for (const auto& [text, line] : {std::pair<std::string, std::string>{"", "1: "},
                                   {"hello\n", "1: "},
                                   {"[1]\n", "1: "},
                                   {"{\"sharefs-recording\":2}\n", "1: "},
                                   {head + "[\"run\",[]]\n", "2: "},
                                   {head + "[\"run\",[],[]]\n", "2: "},
                                   {head + "[\"run\",[],[1]]\n", "2: "},
                                   {head + "[\"run\",[],[{\"is\":1}]]\n[\"run\",[],[{\"is\":1}]]\n", "3: "},
                                   {head + "[\"run\",\"cut off", "2: "},
                                   {head + std::string(100'000, '[') + "\n", "2: "},
                                   {head + "{\"a\":" + std::string(100'000, '{') + "\n", "2: "}}) {
    const auto read = Recording::parse(text);
    INFO(text.substr(0, 60));
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::config);
    CHECK(read.error().message.starts_with(line));
  }
}

TEST_CASE("values out of their range are no answers") {
  const auto value = [](const char* json, auto into) { return from_recorded(nlohmann::json::parse(json), into); };
  CHECK(value("6", EntryKind{}) == false);
  CHECK(value("5", EntryKind{}));
  CHECK_FALSE(value("-1", EntryKind{}));
  CHECK_FALSE(value("1.5", 0));
  CHECK_FALSE(value("2147483648", 0));
  CHECK_FALSE(value("18446744073709551615", std::int64_t{0}));
  CHECK(value("18446744073709551615", std::uint64_t{0}));
  CHECK_FALSE(value("1", false));
  CHECK_FALSE(value("9223372036854775807", std::chrono::microseconds(0)));
  CHECK_FALSE(value("[1]", std::string()));
  CHECK_FALSE(value(R"({"bytes": "\u0100"})", std::string()));
  CHECK_FALSE(value("[[],[]]", std::optional<std::string>()));
  CHECK_FALSE(value("[1,2]", Completed()));

  const auto told = Recording::parse("{\"sharefs-recording\":1}\n[\"mounts\",\"\",[{\"is\":[[1,2]]}]]\n");
  REQUIRE(told);
  RecordedSystem system(nullptr, *told);
  CHECK(system.mounts().error().message.find("cannot be read") != std::string::npos);
  const auto lies = Recording::parse(
      "{\"sharefs-recording\":1}\n"
      "[\"mounts\",\"\",[{\"is\":[[1,1,0,1,\"/\",\"no/path\",false,\"rw\",\"nfs4\",\"a:/b\",\"rw\"]]}]]\n");
  REQUIRE(lies);
  CHECK_FALSE(RecordedSystem(nullptr, *lies).mounts());
}
