#include "fleet/engine.hpp"
#include "fleet/mirror.hpp"

#include "support/catch.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::fleet;

namespace {

const Mirror k_code{.name = "code", .path = "/data/code"};

bool has(const Argv& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

} // namespace

TEST_CASE("what rsync would do is counted by what it means for the node") {
  const auto difference = parse_difference("created directory /data/code\n"
                                           "cd+++++++++ 4096\n"
                                           "<f+++++++++ 1000\n"
                                           "hf+++++++++ 1000\n"
                                           "<f.st...... 500\n"
                                           "<fc........ 7000\n"
                                           ".d..t...... 4096\n"
                                           ".f...pog... 10\n"
                                           "*deleting   0\n"
                                           "\n");
  CHECK(difference.missing == 3);
  CHECK(difference.missing_bytes == 1000);
  CHECK(difference.changed == 2);
  CHECK(difference.changed_bytes == 7500);
  CHECK(difference.attributes == 2);
  CHECK(difference.extra == 1);
  CHECK(difference.room_needed() == 1000 + 3 * 4096 + 7000);
  CHECK(difference.text("new", "to delete") ==
        "3 new (" + std::string("1000 B") + "), 2 changed (7.3 KiB), 2 with another mode, owner or time, 1 to delete");
  CHECK(parse_difference("").empty());
  CHECK(parse_difference("").text("new", "extra").empty());
}

TEST_CASE("a listing's state is that of the path, names, sizes, times, modes and owners") {
  const std::string listed = "created directory /nonexistent\n"
                             "cd+++++++++ 4096 2026/11/25-18:49:47 rwxr-xr-x 0:0 ./\n"
                             ">f+++++++++ 5000 2026/11/25-18:49:47 rw-r--r-- 0:0 a b\n"
                             "cL+++++++++ 4 2026/11/25-18:49:47 rwxrwxrwx 0:0 l -> /etc\n";
  const auto listing = parse_listing("/data/code", listed);
  CHECK(listing.files == 2);
  CHECK(listing.bytes == 5000);
  CHECK(listing.state.size() == 64);
  CHECK(parse_listing("/data/code", listed).state == listing.state);
  CHECK(parse_listing("/data/other", listed).state != listing.state);
  for (const auto& [from, to] : {std::pair{"5000", "5001"},
                                 {"47 rw-", "48 rw-"},
                                 {"rw-r--r--", "rw-------"},
                                 {"0:0 a", "0:1 a"},
                                 {"a b", "a c"},
                                 {"/etc", "/usr"}}) {
    auto other = listed;
    other.replace(other.find(from), std::string_view(from).size(), to);
    CHECK(parse_listing("/data/code", other).state != listing.state);
  }
}

TEST_CASE("a mark is read as it was written, and nothing else is one") {
  const Mark mark{std::string(64, 'a'), 1'764'100'000, "storage1"};
  const auto read = parse_mark(format(mark));
  REQUIRE(read);
  CHECK(read->state == mark.state);
  CHECK(read->at == mark.at);
  CHECK(read->from == mark.from);
  for (const auto* text : {"", "abc 1 host", "garbage"})
    CHECK_FALSE(parse_mark(text));
}

TEST_CASE("what a node says of a directory is found among what else is said") {
  const auto text = "Welcome\nsharefs: room code 100 4096 3dc4\nsharefs: begun other\nsharefs: mark code " +
                    std::string(64, 'b') + " 17 storage1\n";
  const auto there = parse_there(text, "code");
  CHECK(there.room == 409'600U);
  CHECK(there.file_system == "3dc4");
  REQUIRE(there.mark);
  CHECK(there.mark->from == "storage1");
  CHECK_FALSE(there.begun);
  CHECK(parse_there(text, "other").begun);
  CHECK_FALSE(parse_there(text, "other").room);
  CHECK(parse_there("sharefs: gone code\n", "code").gone);
}

TEST_CASE("rsync deletes only where it is asked to, and reads contents where it must") {
  const Way way{"gpu1", "ssh -T --", ""};
  const auto push = rsync_words(k_code, Work::push, way);
  CHECK_FALSE(has(push, "--dry-run"));
  CHECK_FALSE(has(push, "--delete-delay"));
  CHECK_FALSE(has(push, "--checksum"));
  CHECK(has(push, "--numeric-ids"));
  CHECK(push.back() == "gpu1:/data/code/");
  CHECK(has(rsync_words(k_code, Work::look, way), "--dry-run"));
  const auto verify = rsync_words(k_code, Work::verify, way);
  CHECK(has(verify, "--dry-run"));
  CHECK(has(verify, "--checksum"));
  auto other = k_code;
  other.removes = other.by_content = true;
  other.exclude = {"*.tmp"};
  const auto words = rsync_words(other, Work::push, way);
  CHECK(has(words, "--delete-delay"));
  CHECK(has(words, "--checksum"));
  CHECK(has(words, "--exclude=*.tmp"));
  CHECK(rsync_shown(k_code, Work::push).back() == "NODE:/data/code/");
}

TEST_CASE("a command from here is started on this machine, with the way to the node") {
  Asking asking;
  asking.words = {"mirror", "node", "push", "it's"};
  asking.program = "/usr/bin/sharefs";
  asking.from_here = true;
  asking.ssh_config = "/x y/ssh_config";
  const auto script = node_script("/run", asking);
  CHECK(
      script.find("'/usr/bin/sharefs' --frame 1:\"$n\" 'mirror' 'node' 'push' 'it'\\''s' --node \"$n\" --rsh 'ssh ") !=
      std::string::npos);
  CHECK(script.find("x y") != std::string::npos);
  CHECK(script.find("sudo") == std::string::npos);
}

TEST_CASE("a node that was not reached from here has that state") {
  Answer answer;
  answer.version = "1";
  answer.protocol = k_protocol;
  answer.exit_code = 1;
  answer.document = {{"reached", {{"state", "host key"}, {"why", "w"}, {"hint", "h"}}},
                     {"results", nlohmann::json::array()}};
  const auto outcome = outcome_of({.name = "gpu1"}, answer, {.exit_code = 1, .errors = ""});
  CHECK(outcome.state == State::host_key);
  CHECK(outcome.why == "w");
  CHECK(outcome.hint == "h");
}
