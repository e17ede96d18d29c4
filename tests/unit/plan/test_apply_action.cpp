// The child that does a user's step may be under the user's control: what it answers decides nothing but how far the
// step came.
#include "plan/apply.hpp"
#include "plan/check_action.hpp"
#include "support/catch.hpp"
#include "sys/process/wire.hpp"
#include "willing_machine.hpp"

#include <nlohmann/json.hpp>
#include <pthread.h>

using namespace sharefs;
using namespace sharefs::plan;

namespace {

/// What every forked child says instead of working; empty: it does its work.
std::string g_lie;

void lie_in_child() {
  if (g_lie.empty())
    return;
  for (int fd = 3; fd < 256; ++fd) {
    struct stat status{};
    if (::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) [[maybe_unused]]
      const auto written = ::write(fd, g_lie.data(), g_lie.size());
  }
  ::_exit(0);
}

/// `answer` as a child of sys::call sends what it has worked out.
std::string sent(const std::string& answer) {
  const int became_the_user = 0;
  const char it_is_no_error = 1;
  return std::string(reinterpret_cast<const char*>(&became_the_user), sizeof became_the_user) +
         sys::WireWriter().put(it_is_no_error + answer).bytes();
}

sys::WireWriter answer_of(int outcome, bool found) {
  sys::WireWriter answer;
  answer.put(outcome).put(found);
  return answer;
}

std::string without_finding(int outcome) {
  return answer_of(outcome, false).put(std::string("a reason")).bytes();
}

struct Liar {
  test::TemporaryRoot root;
  test::ScriptedSystem system{root.path(), test::willing_machine()};
  Actor self{{"me", ::geteuid(), ::getegid(), {::getegid()}, "/home/me"}, "/home/me"};

  Liar() {
    static const int k_registered = ::pthread_atfork(nullptr, nullptr, lie_in_child);
    REQUIRE(k_registered == 0);
    std::filesystem::create_directories(root.path() + "/home/me/envs");
  }
  Liar(const Liar&) = delete;
  Liar& operator=(const Liar&) = delete;
  ~Liar() { g_lie.clear(); }
};

} // namespace

TEST_CASE("an answer that is none is refused: garbage, an action, more than an answer, an outcome that there is not") {
  Liar machine;
  const Action step = make_link("/home/me/envs/llm", "/data/share/conda/llm", machine.self);
  CHECK(check_action(step, machine.system)); // it works when nobody lies
  const Action evil = File{"/etc/sudoers.d/me", std::nullopt, "me ALL=(ALL) ALL\n", 0440};
  const auto fair = without_finding(0);
  for (const auto& lie : {std::string("garbage"), sent(""), sent("garbage"), sent(to_json(evil).dump()),
                          sent(fair + to_json(evil).dump()), sent(fair + fair), sent(fair.substr(0, 2)),
                          sent(without_finding(77)), sent(without_finding(static_cast<int>(Outcome::skipped)))}) {
    CAPTURE(lie);
    g_lie = lie;
    const auto checked = check_action(step, machine.system);
    const auto applied = apply_action(step, machine.system);
    g_lie.clear();
    REQUIRE_FALSE(checked);
    if (lie != "garbage")
      CHECK(checked.error().message == "the child process gave no valid result");
    CHECK_FALSE(applied);
  }
  CHECK_FALSE(std::filesystem::exists(machine.root.path() + "/etc"));
}

TEST_CASE("what a child says that it found changes no more of the action than the mode of its own directory") {
  Liar machine;
  const auto found = [](std::uint32_t mode) {
    return sent(answer_of(0, true).put(0U).put(0U).put(mode).put(std::string("u::rwx")).put(std::string()).bytes());
  };
  const Action link = make_link("/home/me/envs/llm", "/data/share/conda/llm", machine.self);
  g_lie = found(07777);
  const auto linked = check_action(link, machine.system);
  const Action directory = remove_directory("/home/me/envs", 0755, machine.self);
  g_lie = found(0xffff);
  const auto removed = check_action(directory, machine.system);
  g_lie.clear();
  REQUIRE(linked);
  CHECK(linked->intent == link);
  REQUIRE(removed);
  CHECK(removed->intent == Action(remove_directory("/home/me/envs", 07777, machine.self)));
}

TEST_CASE("only where others may hold it up does an action of this process's user need a child") {
  Liar machine;
  const auto path = [&](const std::string& name) { return machine.root.path() + name; };
  const auto needs_child = [&](const Action& action) {
    g_lie = "garbage";
    const auto checked = check_action(action, machine.system);
    g_lie.clear();
    return !checked.has_value();
  };
  std::filesystem::create_directories(path("/own"));
  std::filesystem::create_directories(path("/all"));
  REQUIRE(::chmod(path("/own").c_str(), 0755) == 0);
  REQUIRE(::chmod(path("/all").c_str(), 01777) == 0);
  CHECK_FALSE(needs_child(make_directory("/own/new")));
  CHECK_FALSE(needs_child(make_link("/own/link", "/data/share/conda/llm")));
  CHECK(needs_child(make_directory("/all/new"))); // a user could mount FUSE at the name of its temporary directory
  CHECK(needs_child(make_directory("/own/new", 0755, machine.self)));
  auto checked = make_link("/own/link", "target");
  checked.checked = true; // the target may lie anywhere
  CHECK(needs_child(checked));
}
