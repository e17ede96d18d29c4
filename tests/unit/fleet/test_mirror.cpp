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
  CHECK(difference.missing_files == 2);
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

TEST_CASE("what a node says of a directory is found among what else is said") {
  const auto there = parse_there("Welcome\n@sharefs missing yes\n@sharefs room 100 4096 3dc4\n");
  CHECK(there.is_missing);
  CHECK(there.room == 409'600U);
  CHECK(there.file_system == "3dc4");
  CHECK_FALSE(parse_there("@sharefs room 100 4096 3dc4\n").is_missing);
  CHECK_FALSE(parse_there("missing\n").room);
}

TEST_CASE("rsync deletes only where it is asked to, and reads contents where it must") {
  const Way way{"gpu1", "ssh -T --", ""};
  const auto push = rsync_words(k_code, Work::push, way);
  CHECK_FALSE(has(push, "--dry-run"));
  CHECK_FALSE(has(push, "--delete-delay"));
  CHECK_FALSE(has(push, "--checksum"));
  CHECK(has(push, "--numeric-ids"));
  CHECK(push.back() == "gpu1:./");                                     // mirror.sh has entered the directory
  CHECK(push[push.size() - 2] == std::string(sys::k_handed_on) + "/"); // the name may lead elsewhere by now
  CHECK(has(rsync_words(k_code, Work::preview, way), "--dry-run"));
  const auto compared = rsync_words(k_code, Work::compare, way);
  CHECK(has(compared, "--dry-run"));
  CHECK(has(compared, "--delete-delay"));
  CHECK_FALSE(has(compared, "--checksum"));
  auto other = k_code;
  other.removes = other.by_content = true;
  other.exclude = {"*.tmp"};
  const auto words = rsync_words(other, Work::push, way);
  CHECK(has(words, "--delete-delay"));
  CHECK(has(words, "--checksum"));
  CHECK(has(words, "--exclude=*.tmp"));
  CHECK(rsync_shown(k_code).back() == "NODE:/data/code/");
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
