#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "fleet/facts.hpp"
#include "fleet/frames.hpp"
#include "fleet/outcome.hpp"
#include "fleet/run.hpp"
#include "support/catch.hpp"

#include <chrono>
#include <fmt/format.h>
#include <random>

using namespace sharefs;
using namespace sharefs::fleet;

namespace {

std::string long_document() {
  nlohmann::json document{{"command", "status"}};
  for (int i = 0; i < 3000; ++i)
    document["rows"].push_back({{"name", fmt::format("@sf1 gpu{} ", i)}, {"text", "größe \xff"}});
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

Answer read(const std::string& text, const std::string& node = "gpu1") {
  FrameReader reader;
  reader.add(text);
  return reader.answer(node);
}

Outcome judged(const std::string& text, std::optional<int> code = 0, const std::string& errors = "") {
  return outcome_of({"gpu1"}, read(text), {code, errors});
}

std::string framed(int code, const nlohmann::json& document) {
  return hello_frame("gpu1", "1.0") + answer_frames("gpu1", code, document.dump());
}

} // namespace

TEST_CASE("a node that was begun and not waited for is not taken for one that was not tried", "[fleet]") {
  CHECK(outcome_of({.name = "gpu1"}, {}, {}).state == State::not_tried);
  const auto outcome = outcome_of({.name = "gpu1"}, {}, {.exit_code = std::nullopt, .errors = "", .begun = true});
  CHECK(outcome.state == State::failed);
  CHECK(outcome.why.find("whether it has ended") != std::string::npos);
}

TEST_CASE("a document comes whole through frames, with anything between", "[fleet]") {
  const auto document = long_document();
  const auto text = hello_frame("gpu1", "1.0") + answer_frames("gpu1", 3, document);
  for (const auto& line : split_lines(text))
    REQUIRE(line.size() < 1024);
  auto answer = read("Welcome!\n" + text + "logout\n");
  CHECK(answer.version == "1.0");
  CHECK(answer.protocol == k_protocol);
  REQUIRE(answer.exit_code == 3);
  CHECK(nlohmann::json::parse(answer.document.dump()) == nlohmann::json::parse(document));

  std::string noisy; // labels, half lines of other nodes glued in front, carriage returns
  for (const auto& line : split_lines(text))
    noisy += "3: @sf1 gpu2 4/9 0000 {\"ha" + line + "\r\nmotd\n";
  CHECK(read(noisy).document == answer.document);

  auto lines = split_lines(text);
  std::shuffle(lines.begin(), lines.end(), std::mt19937(1)); // NOLINT(bugprone-random-generator-seed)
  CHECK(read(join(lines, "\n")).document == answer.document);
}

TEST_CASE("a line that is missing, cut or changed is no answer", "[fleet]") {
  const auto text = framed(0, {{"command", "status"}, {"x", std::string(3000, 'x')}});
  auto lines = split_lines(text);
  REQUIRE(lines.size() > 3);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto without = lines;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK_FALSE(read(join(without, "\n")).exit_code);
    auto cut = lines;
    cut[i].resize(cut[i].size() / 2);
    CHECK_FALSE(read(join(cut, "\n")).exit_code);
    auto changed = lines;
    changed[i].back() = changed[i].back() == 'y' ? 'z' : 'y';
    CHECK_FALSE(read(join(changed, "\n")).exit_code);
    auto relabelled = lines; // as srun does with what it cuts
    relabelled[i].replace(relabelled[i].find("gpu1"), 4, "gpu2");
    CHECK_FALSE(read(join(relabelled, "\n")).exit_code);
  }
  CHECK(read(text).exit_code == 0);
}

TEST_CASE("what became of a node", "[fleet]") {
  CHECK(judged(framed(0, {{"results", nlohmann::json::array()}})).state == State::ok);
  const auto changed =
      judged(framed(0, {{"results", {{{"outcome", "done"}}, {{"outcome", "unchanged"}}}}, {"journal_id", "17"}}));
  CHECK(changed.state == State::changed);
  CHECK(changed.why == "1 step done");
  CHECK(changed.journal_ids() == "17");
  CHECK_FALSE(changed.can_be_undone());
  const auto staged = nlohmann::ordered_json::parse(R"({"plan": {"steps": [
      {"undoable": false}, {"bookkeeping": true, "undoable": false}, {"bookkeeping": true, "undoable": true}]},
      "results": [{"step": 0, "outcome": "done"}, {"step": 1, "outcome": "done"}, {"step": 2, "outcome": "done"},
                  {"step": 3, "outcome": "failed"}], "journal_id": "17"})");
  CHECK(judged(framed(0, staged)).why == "1 step done");  // as many as the plan shows
  CHECK_FALSE(judged(framed(0, staged)).can_be_undone()); // the node says so, which knows what was deleted for good
  auto undoable = staged;
  undoable["can_be_undone"] = true;
  CHECK(judged(framed(0, undoable)).can_be_undone());
  CHECK(judged(framed(3, {{"plan", {{"steps", {{{"why", ""}}}}}}})).state == State::pending);
  const auto failed = judged(framed(2, {{"error", {{"message", "there is no X"}, {"hint", "make it"}}}}));
  CHECK(failed.state == State::failed);
  CHECK(failed.why == "there is no X");
  CHECK(failed.hint == "make it");
  CHECK(judged("", k_timed_out).state == State::timed_out);
  CHECK(judged(hello_frame("gpu1", "1.0"), k_timed_out).state == State::timed_out);
  CHECK(judged("", 127, "timeout: failed to run command 'sharefs'").state == State::no_sharefs);
  CHECK(judged("", 2, "error: unknown option `--frame`").state == State::version_differs);
  CHECK(judged("", std::nullopt).state == State::not_tried);
  CHECK(judged(hello_frame("gpu1", "1.0"), std::nullopt).state == State::failed);
  struct Row {
    std::string said;
    State state;
  };
  for (const auto& row : std::vector<Row>{
           {"ssh: connect to host gpu1 port 22: Connection timed out", State::unreachable},
           {"ssh: connect to host gpu1 port 22: No route to host", State::unreachable},
           {"ssh: Could not resolve hostname gpu1: Name or service not known", State::unreachable},
           {"ssh: connect to host gpu1 port 22: Connection refused", State::refused},
           {"No ED25519 host key is known for gpu1\nHost key verification failed.", State::host_key},
           {"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            State::other_host_key},
           {"root@gpu1: Permission denied (publickey,password).", State::denied},
           {"kex_exchange_identification: Connection closed by remote host", State::unreachable},
           {"something new", State::unreachable},
       }) {
    INFO(row.said);
    CHECK(judged("", 255, row.said).state == row.state);
  }
  CHECK(judged("", 1, "sudo: a password is required").state == State::denied);
  CHECK(judged("", 1, "Permission denied (of the command)").state == State::failed);
}

TEST_CASE("another protocol is never taken for an answer", "[fleet]") {
  auto hello = hello_frame("gpu1", "9.0");
  const auto other = read(hello);
  CHECK(other.protocol == k_protocol);
  Answer answer{"9.0", k_protocol + 1, 0, nlohmann::ordered_json::parse(R"({"results":[]})")};
  CHECK(outcome_of({"gpu1"}, answer, {0, ""}).state == State::version_differs);
}

// One node's answer must not end what is done with those of all others.
TEST_CASE("a document in another shape than ours is an answer all the same", "[fleet]") {
  for (const auto* document :
       {R"({"results": "x"})", R"({"results": [1, {"outcome": 5, "error": 7}, {"error": {"message": 1}}]})",
        R"({"results": [{"outcome": "failed", "error": {"message": [], "hint": 2}}]})",
        R"({"diagnoses": [{"severity": 3}, "x"]})", R"({"diagnoses": [{"severity": "error", "subject": 1}]})",
        R"({"diagnoses": {"a": 1}})", R"({"error": {"message": 5, "hint": []}})", R"({"reached": {"state": 7}})",
        R"({"plan": {"steps": [{"bookkeeping": "yes"}, 4, null]}})", R"({"plan": []})", R"({"journal_id": 4})"})
    for (const int code : {0, 1, 3, 4}) {
      CAPTURE(document, code);
      Outcome outcome;
      REQUIRE_NOTHROW(outcome = judged(framed(code, nlohmann::json::parse(document))));
      CHECK(outcome.state != State::not_tried);
      CHECK(outcome.journal_ids().empty());
    }
  Answer other;
  REQUIRE_NOTHROW(other = read("@sf1 gpu1 0/0 3c90f90e {\"sharefs\":5,\"protocol\":\"1\"}\n"));
  CHECK(other.version.empty());
}

TEST_CASE("the exit code of many", "[fleet]") {
  const auto code = [](std::vector<State> states) {
    std::vector<Outcome> outcomes;
    for (const auto state : states)
      outcomes.push_back({.node = "n", .state = state});
    return exit_code_of(outcomes);
  };
  CHECK(code({State::ok, State::changed}) == 0);
  CHECK(code({State::ok, State::pending}) == 3);
  CHECK(code({State::pending, State::failed}) == 4);
  CHECK(code({State::failed, State::unreachable}) == 1);
  CHECK(code({State::not_tried}) == 1);
}

TEST_CASE("changes go to servers, a canary, a tenth, and the rest", "[fleet]") {
  std::vector<Node> nodes{{"s1", "", "", {}, {"servers"}, {}}};
  for (int i = 0; i < 40; ++i)
    nodes.push_back({fmt::format("gpu{}", i), "", "", {}, {"clients"}, {}});
  const auto batches = batches_for_changes(nodes, 1);
  REQUIRE(batches.size() == 4);
  CHECK(batches[0].nodes.front().name == "s1");
  CHECK(batches[0].must_succeed);
  CHECK(batches[1].nodes.size() == 1);
  CHECK(batches[1].must_succeed);
  CHECK(batches[2].nodes.size() == 4);
  CHECK(batches[3].nodes.size() == 35);
  CHECK(batches_for_changes({nodes[3]}, 5).size() == 1);
  CHECK(batches_for_changes(nodes, 1, true).back().nodes == batches[0].nodes);
  CHECK(batches_for_changes(nodes, 1, true).front().nodes == batches[1].nodes);
  CHECK(batches_for_changes(nodes, 1, true).back().needs_all);
  CHECK_FALSE(batches[0].needs_all);
  CHECK(parse_most_failures("5%")->of(60) == 3);
  CHECK(parse_most_failures("3")->of(60) == 3);
  CHECK_FALSE(parse_most_failures("101%"));
  CHECK_FALSE(parse_most_failures("x"));
  CHECK_FALSE(parse_most_failures(""));
}

TEST_CASE("machines that differ are named by what most have", "[fleet]") {
  const auto answer = [](std::string node, std::optional<std::uint64_t> uid, std::string config, std::int64_t clock) {
    NodeFacts facts{node, "1.0", std::move(config), clock, {{"alice", uid, 100}}, {}};
    return NodeAnswer{std::move(node), facts, 1'000'000};
  };
  CHECK(compare({answer("gpu1", 1000, "c", 1'000'100), answer("gpu2", 1000, "c", 1'000'900)}).empty());
  const auto found = compare({answer("gpu1", 1000, "c", 1'000'100), answer("gpu2", 1001, "c", 1'000'100),
                              answer("gpu3", 1000, "d", 1'005'100), answer("gpu4", std::nullopt, "c", 1'000'100)});
  const auto at = [&](std::string_view code) -> const Diagnosis* {
    const auto one = std::ranges::find(found, code, &Diagnosis::code);
    return one == found.end() ? nullptr : &*one;
  };
  CHECK(found.size() == 4);
  REQUIRE(at("SF803") != nullptr);
  CHECK(at("SF803")->subject == "gpu2");
  CHECK(at("SF803")->severity == Severity::error);
  REQUIRE(at("SF802") != nullptr);
  CHECK(at("SF802")->subject == "gpu3");
  REQUIRE(at("SF804") != nullptr);
  CHECK(at("SF804")->subject == "gpu4");
  REQUIRE(at("SF805") != nullptr);
  CHECK(at("SF805")->message.find("5 s ahead of") != std::string::npos);
}

TEST_CASE("groups that differ, and machines that say nothing of one", "[fleet]") {
  const auto answer = [](std::string node, std::vector<Account> groups) {
    NodeFacts facts{node, "1.0", "c", 0, {}, std::move(groups)};
    return NodeAnswer{std::move(node), facts};
  };
  const auto found = compare({answer("gpu1", {{"ml", {}, 3000}}), answer("gpu2", {{"ml", {}, 3001}}),
                              answer("gpu3", {{"ml", {}, 3000}}), answer("gpu4", {{"ml"}}), answer("old", {})});
  REQUIRE(found.size() == 2);
  const auto& other = found[found[0].code == "SF803" ? 0 : 1];
  const auto& none = found[found[0].code == "SF804" ? 0 : 1];
  CHECK((other.code == "SF803" && other.subject == "gpu2"));
  CHECK(other.message.starts_with("group ml is gid 3001, and gid 3000 on gpu[1,3]:"));
  CHECK((none.code == "SF804" && none.subject == "gpu4" && none.message == "there is no group ml"));
}

TEST_CASE("machines that have one host name are named together", "[fleet]") {
  const auto answer = [](const std::string& node, const std::string& hostname) {
    return NodeAnswer{node, {hostname, "1.0", "c", 0, {}, {}}};
  };
  CHECK(compare({answer("gpu1", "gpu1"), answer("gpu2", "gpu2.cluster"), answer("gpu3", "")}).empty());
  const auto found = compare({answer("gpu1", "debian"), answer("gpu2", "gpu2"), answer("gpu3", "debian")});
  REQUIRE(found.size() == 1);
  CHECK((found[0].code == "SF808" && found[0].subject == "gpu[1,3]" && found[0].severity == Severity::error));
  CHECK(found[0].message.find("`debian`") != std::string::npos);
}

TEST_CASE("one machine with two names is not one that needs another host name", "[fleet]") {
  const auto answer = [](const std::string& node, const std::string& hostname, const std::string& boot_id) {
    return NodeAnswer{node, {hostname, "1.0", "c", 0, {}, {}, boot_id}};
  };
  const auto found = compare({answer("server", "s", "b1"), answer("gpu1", "g", "b2"), answer("storage", "s", "b1")});
  REQUIRE(found.size() == 1);
  CHECK((found[0].code == "SF808" && found[0].subject == "server,storage"));
  CHECK(found[0].message.starts_with("they are one machine, `s`"));
  CHECK(found[0].hint.find("hostnamectl") == std::string::npos);
  CHECK(compare({answer("c1", "c1", "b1"), answer("c2", "c2", "b1")}).empty()); // containers of one machine
  const auto both = compare({answer("a", "s", "b1"), answer("b", "s", "b1"), answer("c", "s", "b2")});
  REQUIRE(both.size() == 2);
  CHECK((both[0].subject == "a,b" && both[1].subject == "a,b,c"));
}

TEST_CASE("what a machine says of itself is read as it was written", "[fleet]") {
  const NodeFacts facts{"gpu1", "1.0", "abc", 12, {{"alice", 1000, 100}, {"bob"}}, {{"ml", {}, 3000}}};
  const auto json = nlohmann::ordered_json::parse(json_of(facts).dump());
  REQUIRE(read_facts(json));
  CHECK(*read_facts(json) == facts);
  CHECK_FALSE(read_facts(nlohmann::ordered_json::parse(R"({"users": 3})")));
}

TEST_CASE("a node without sudo is not one without sharefs", "[fleet]") {
  CHECK(judged("", 127, "sh: 1: exec: sharefs: not found\n").state == State::no_sharefs);
  CHECK(judged("", 127, "timeout: failed to run command 'sharefs': No such file or directory\n").state ==
        State::no_sharefs);
  const auto outcome = judged("", 127, "sh: 1: exec: sudo: not found\n");
  CHECK(outcome.state == State::denied);
  CHECK(outcome.why == "it needs root, and there is no sudo");
}

TEST_CASE("attack: a node answers with an entry of its journal that is a command line", "[fleet]") {
  CHECK(Outcome{.node = "gpu1", .document = {{"journal_id", "17"}}}.journal_ids() == "17");
  CHECK(Outcome{.node = "gpu1", .document = {{"journal_id", "17; reboot"}}}.journal_ids().empty());
  const auto three =
      nlohmann::ordered_json::parse(R"({"journal_id": "17", "earlier_journal_ids": ["14", "15; reboot", 4, "16"]})");
  CHECK(Outcome{.node = "gpu1", .document = three}.journal_ids() == "17 16 14");
}

TEST_CASE("attack: a node's answer takes the square of its size to read", "[fleet]") {
  const auto begin = std::chrono::steady_clock::now();
  nlohmann::json document{{"journal_id", "300000"}, {"error", {{"message", "no"}, {"hint", ""}}}};
  for (int i = 0; i < 200'000; ++i)
    document["earlier_journal_ids"].push_back(std::to_string(i));
  for (int i = 0; i < 400'000; ++i)
    document["error"]["hint"].get_ref<std::string&>() += "NODE";
  const auto outcome = judged(framed(1, document));
  CHECK(outcome.journal_ids().starts_with("300000 999 998 "));
  CHECK(outcome.hint.size() < 5000);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("nothing of a login's own PATH is run as root", "[fleet]") {
  const auto line = node_line({"timeout", "1", "sharefs"}, true);
  CHECK(line.find("sudo -n env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \"$@\"") !=
        std::string::npos);
  CHECK(node_line({"timeout", "1", "sharefs"}, false).find("sudo") == std::string::npos);
  // sharefs itself is looked for in the system's directories, and is all that sudo is given.
  Asking asking;
  asking.words = {"up"};
  asking.as_root = true;
  asking.command = std::chrono::seconds(7);
  const auto script = node_script("/run", asking);
  CHECK(script.find("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; p=$(command -v") !=
        std::string::npos);
  CHECK(script.find("sudo -n \"$p\" \"$@\"") != std::string::npos);
  CHECK(script.find("RemoteCommand=none") != std::string::npos); // of the user's ssh_config(5), as for tmux(1)
  CHECK(script.find(":7 ") != std::string::npos);
}
