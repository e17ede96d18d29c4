// ChangeFiles on real files: links, modes, what changed meanwhile, and what somebody may plant.
#include "plan/apply.hpp"
#include "plan/check_action.hpp"
#include "plan/perform.hpp"
#include "support/catch.hpp"
#include "sys/fs/exclusive.hpp"
#include "sys/fs/sha256.hpp"
#include "willing_machine.hpp"

#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::plan;

namespace {

struct Changed {
  test::TemporaryRoot root;
  test::ScriptedSystem system{root.path(), test::willing_machine()};
  Error last;

  Changed() { std::filesystem::create_directories(at("")); }
  [[nodiscard]] std::string at(const std::string& path) const { return root.path() + "/env/" + path; }
  [[nodiscard]] std::string text(const std::string& path) const {
    return std::filesystem::exists(at(path)) ? test::content_of(at(path)) : "(nothing)";
  }
  void file(const std::string& path, const std::string& content, mode_t mode = 0644) const {
    test::put(at(path), content);
    REQUIRE(::chmod(at(path).c_str(), mode) == 0);
  }
  [[nodiscard]] struct stat status(const std::string& path) const {
    struct stat found{};
    REQUIRE(::lstat(at(path).c_str(), &found) == 0);
    return found;
  }
  [[nodiscard]] ChangeFiles action(std::vector<FileChange> changes) const {
    const auto top = status(".");
    return {"/env", top.st_dev, top.st_ino, std::move(changes)};
  }
  static FileChange edit(const std::string& path, const std::string& before, const std::string& after) {
    return {path, sys::sha256(before), sys::sha256(after), {{0, before, after}}, {}, {}};
  }
  std::string apply(const ChangeFiles& action) {
    const auto outcome = apply_action(action, system);
    last = outcome ? Error{} : outcome.error();
    return outcome ? to_string(*outcome) : to_string(outcome.error().code);
  }
  [[nodiscard]] std::size_t names() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(at("")), {}));
  }
};

} // namespace

TEST_CASE("requirement 9: a changed file keeps all but its content", "[change_files]") {
  Changed machine;
  machine.file("a", "old", 0750);
  const auto before = machine.status("a");
  const auto action = machine.action({Changed::edit("a", "old", "new one")});
  REQUIRE(machine.apply(action) == "done");
  CHECK(machine.text("a") == "new one");
  const auto after = machine.status("a");
  CHECK((after.st_mode == before.st_mode && after.st_uid == before.st_uid && after.st_gid == before.st_gid));
  CHECK(after.st_mtim.tv_sec > before.st_mtim.tv_sec); // also within one second: compiled Python compares them
  CHECK(machine.names() == 1);
  CHECK(machine.apply(action) == "unchanged");
  REQUIRE(machine.apply(std::get<ChangeFiles>(*invert(action))) == "done");
  CHECK(machine.text("a") == "old");
}

TEST_CASE("requirement 9: other names of a file keep the old content", "[change_files]") {
  Changed machine;
  machine.file("a", "old");
  std::filesystem::create_hard_link(machine.at("a"), machine.at("in-the-cache"));
  REQUIRE(machine.apply(machine.action({Changed::edit("a", "old", "new")})) == "done");
  CHECK((machine.text("a") == "new" && machine.text("in-the-cache") == "old"));
}

TEST_CASE("what was cut off goes on", "[change_files]") {
  Changed machine;
  machine.file("a", "new");
  machine.file("b", "old");
  machine.file(".b.sharefs-new-node1", "half");
  REQUIRE(machine.apply(machine.action({Changed::edit("a", "old", "new"), Changed::edit("b", "old", "new")})) ==
          "done");
  CHECK((machine.text("a") == "new" && machine.text("b") == "new"));
}

TEST_CASE("what is not as planned is left, and the others are done", "[change_files]") {
  Changed machine;
  machine.file("a", "mine");
  machine.file("b", "old");
  machine.file("set-id", "old", 04755);
  std::filesystem::create_symlink("b", machine.at("link"));
  REQUIRE(machine.apply(machine.action({Changed::edit("a", "old", "new"), Changed::edit("b", "old", "new"),
                                        Changed::edit("link", "old", "new"), Changed::edit("missing", "old", "new"),
                                        Changed::edit("set-id", "old", "new")})) == "failed");
  CHECK(machine.last.message == "4 files not changed; the first: /env/a: is not as planned any more");
  CHECK((machine.text("a") == "mine" && machine.text("b") == "new" && machine.text("set-id") == "old"));
  CHECK(std::filesystem::is_symlink(machine.at("link")));
}

TEST_CASE("a file that shows what is to be changed is left while another one is, so that it is seen later",
          "[change_files]") {
  Changed machine;
  machine.file("a", "mine");
  machine.file("b", "old");
  machine.file("c", "old");
  auto shows = Changed::edit("b", "old", "new");
  shows.round = 1;
  const auto action = machine.action({shows, Changed::edit("a", "old", "new"), Changed::edit("c", "old", "new")});
  CHECK(machine.apply(action) == "failed");
  CHECK((machine.text("a") == "mine" && machine.text("b") == "old" && machine.text("c") == "new"));
  CHECK(machine.names() == 3);
  machine.file("a", "old");
  CHECK(machine.apply(action) == "done");
  CHECK((machine.text("a") == "new" && machine.text("b") == "new" && machine.text("c") == "new"));
  machine.file("a", "mine"); // an undo leaves this file only
  CHECK(machine.apply(std::get<ChangeFiles>(*invert(action))) == "failed");
  CHECK((machine.text("a") == "mine" && machine.text("b") == "old" && machine.text("c") == "old"));
}

TEST_CASE("an undo deletes the new content of a file that did not get it", "[change_files]") {
  Changed machine;
  machine.file("a", "old");
  machine.file(sys::temporary_name("a", "new"), "new");
  machine.file("b", "new");
  const auto action = machine.action({Changed::edit("a", "old", "new"), Changed::edit("b", "old", "new")});
  CHECK(machine.apply(std::get<ChangeFiles>(*invert(action))) == "done");
  CHECK((machine.text("a") == "old" && machine.text("b") == "old"));
  CHECK(machine.names() == 2);
}

TEST_CASE("on a disk that is full no file is changed, so that the same command does all of it later",
          "[change_files]") {
  Changed machine;
  machine.file("a", "old");
  machine.file("b", "old");
  const auto action = machine.action({Changed::edit("a", "old", "new"), Changed::edit("b", "old", "larger")});
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{4, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
  const auto applied = machine.apply(action);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(applied == "failed");
  CHECK(machine.last.message == "/env/b: File too large");
  CHECK((machine.text("a") == "old" && machine.text("b") == "old"));
  CHECK(machine.apply(action) == "done");
  CHECK((machine.text("a") == "new" && machine.text("b") == "larger"));
}

TEST_CASE("an edit that does not fit changes nothing", "[change_files]") {
  Changed machine;
  machine.file("a", "old");
  auto change = Changed::edit("a", "old", "new");
  change.edits = {{1, "old", "new"}};
  CHECK(machine.apply(machine.action({change})) == "failed");
  change = Changed::edit("a", "old", "new");
  change.after = sys::sha256("other");
  CHECK(machine.apply(machine.action({change})) == "failed");
  CHECK((machine.text("a") == "old" && machine.names() == 1));
}

TEST_CASE("nothing leads out of the directory", "[change_files]") {
  Changed machine;
  test::put(machine.root.path() + "/outside", "old");
  std::filesystem::create_symlink("..", machine.at("up"));
  for (const auto* path : {"../outside", "/outside", "up/outside"}) {
    INFO(path);
    CHECK(machine.apply(machine.action({Changed::edit(path, "old", "new")})) == "failed");
    FileChange removal;
    removal.path = path;
    removal.removed = true;
    CHECK(machine.apply(machine.action({removal})) != "done");
    CHECK(test::content_of(machine.root.path() + "/outside") == "old");
  }
}

TEST_CASE("requirement 11: deletions and modes", "[change_files]") {
  Changed machine;
  machine.file("a.pyc", "x");
  machine.file("closed", "x", 0600);
  machine.file("linked", "x", 0600);
  std::filesystem::create_hard_link(machine.at("linked"), machine.root.path() + "/secret");
  FileChange removal;
  removal.path = "a.pyc";
  removal.removed = true;
  const auto mode = [](const std::string& path) { return FileChange{path, "", "", {}, 0600, 0644}; };
  REQUIRE(machine.apply(machine.action({removal, mode("closed")})) == "done");
  CHECK_FALSE(std::filesystem::exists(machine.at("a.pyc")));
  CHECK((machine.status("closed").st_mode & 07777) == 0644);
  CHECK(machine.apply(machine.action({removal, mode("closed")})) == "unchanged");
  CHECK(machine.apply(machine.action({mode("linked")})) == "failed"); // another name may lie anywhere
  CHECK((machine.status("linked").st_mode & 07777) == 0600);
  CHECK_FALSE(invert(machine.action({removal, mode("closed")})));
}

TEST_CASE("attack: another file than the one that was looked at keeps its mode, its content and its name",
          "[change_files]") {
  // What somebody renames there while the plan is shown: of the same mode, and with the same content.
  Changed machine;
  machine.file("closed", "old", 0600);
  const auto seen = sys::identity_of(machine.status("closed"));
  FileChange mode{"closed", "", "", {}, 0600, 0644};
  auto edit = Changed::edit("closed", "old", "new");
  FileChange removal{"closed", "", "", {}, {}, {}, true};
  const auto change = GENERATE_REF(&mode, &edit, &removal);
  change->identity = seen;
  change->identity.changed = 0;
  SECTION("another one") {
    machine.file("secret", "old", 0600);
    std::filesystem::rename(machine.at("secret"), machine.at("closed"));
  }
  SECTION("given to another user since") {
    if (::geteuid() != 0)
      return;
    REQUIRE(::chown(machine.at("closed").c_str(), 4711, 4711) == 0);
  }
  SECTION("written since, where its content was judged") {
    if (change != &removal)
      return;
    change->identity.changed = seen.changed - 1;
  }
  SECTION("another kind") {
    if (change == &edit)
      return;
    REQUIRE(std::filesystem::remove(machine.at("closed")));
    REQUIRE(::mkdir(machine.at("closed").c_str(), 0600) == 0);
  }
  const auto before = machine.status("closed");
  CHECK(machine.apply(machine.action({*change})) == "failed");
  CHECK(machine.last.message.ends_with("/env/closed: is not as planned any more"));
  const auto after = machine.status("closed");
  CHECK((after.st_mode == before.st_mode && after.st_ino == before.st_ino));
}

TEST_CASE("the file that was looked at is changed, and comes back after a mount anew", "[change_files]") {
  Changed machine;
  machine.file("closed", "old", 0600);
  machine.file("edited", "old", 0600);
  FileChange mode{"closed", "", "", {}, 0600, 0644};
  auto edit = Changed::edit("edited", "old", "new");
  mode.identity = sys::identity_of(machine.status("closed"));
  edit.identity = sys::identity_of(machine.status("edited"));
  mode.identity.changed = edit.identity.changed = 0;
  const auto action = machine.action({mode, edit});
  REQUIRE(machine.apply(action) == "done");
  CHECK(machine.apply(action) == "unchanged");
  auto back = std::get<ChangeFiles>(*invert(action));
  CHECK((back.changes[0].identity.device == 0 && back.changes[0].identity.inode == mode.identity.inode));
  CHECK((back.changes[1].identity.inode == 0 && back.changes[1].identity.uid == ::geteuid()));
  REQUIRE(machine.apply(back) == "done");
  CHECK(((machine.status("closed").st_mode & 07777) == 0600 && machine.text("edited") == "old"));
}

TEST_CASE("another directory than the planned one is a conflict", "[change_files]") {
  Changed machine;
  machine.file("a", "old");
  auto action = machine.action({Changed::edit("a", "old", "new")});
  ++action.inode;
  CHECK(machine.apply(action) == "conflict");
  action.path = "/nowhere";
  CHECK(machine.apply(action) == "not_found");
  CHECK(machine.text("a") == "old");
}

TEST_CASE("many files, with few descriptors", "[change_files]") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const auto descriptors = GENERATE(rlim_t{64}, rlim_t{1024});
  const rlimit few{std::min(descriptors, before.rlim_max), before.rlim_max};
  Changed machine;
  std::vector<FileChange> changes;
  for (int i = 0; i < 1500; ++i) {
    const auto name = "d" + std::to_string(i % 7) + "/f" + std::to_string(i);
    std::filesystem::create_directories(std::filesystem::path(machine.at(name)).parent_path());
    test::put(machine.at(name), "old");
    changes.push_back(Changed::edit(name, "old", "new" + std::to_string(i)));
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto applied = machine.apply(machine.action(changes));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(applied == "done");
  CHECK((machine.text("d0/f0") == "new0" && machine.text("d1/f1499") == "new1499"));
  CHECK(machine.apply(machine.action(changes)) == "unchanged");
}
