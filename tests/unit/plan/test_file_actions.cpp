// The actions on files, each on a real tree: done, done already, and something else there.
#include "action_tree.hpp"
#include "plan/check_action.hpp"
#include "plan/perform.hpp"
#include "support/catch.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

using namespace sharefs;
using namespace sharefs::plan;
namespace fs = std::filesystem;
using test::Tree;

TEST_CASE("File creates, replaces and keeps its word about `before`") {
  Tree tree;
  const auto old_mask = ::umask(077); // modes are exact whatever the umask is
  CHECK(tree.apply(File{"/x", std::nullopt, "a", 0644}) == "done");
  ::umask(old_mask);
  CHECK(test::content_of(tree.at("/x")) == "a");
  CHECK(tree.mode("/x") == 0644);
  CHECK(tree.apply(File{"/x", std::nullopt, "a", 0644}) == "unchanged");
  CHECK(tree.apply(File{"/x", "a", "b", 0600}) == "done");
  CHECK(tree.mode("/x") == 0644);
  CHECK(tree.apply(File{"/x", "a", "c", 0600}) == "conflict");
  CHECK(tree.last.message == "/x: expected the content of 1 B that the plan was made for, found other content, 1 B");
  CHECK(tree.apply(File{"/x", std::nullopt, "c", 0600}) == "conflict");
  CHECK(tree.apply(File{"/y", "a", "c", 0600}) == "conflict");
  CHECK(tree.last.message == "/y: expected the content of 1 B that the plan was made for, found no file");
  CHECK(tree.apply(File{"/no/y", std::nullopt, "c", 0600}) == "not_found");
  CHECK(test::content_of(tree.at("/x")) == "b");
}

TEST_CASE("File deletes only what it knows") {
  Tree tree;
  test::put(tree.at("/x"), "a");
  ::chmod(tree.at("/x").c_str(), 0604);
  CHECK(tree.apply(remove_file("/x", "b")) == "conflict");
  const auto checked = check_action(remove_file("/x", "a"), tree.system);
  REQUIRE(checked);
  CHECK(checked->intent == Action(remove_file("/x", "a", 0604))); // for an exact undo
  CHECK(tree.apply(remove_file("/x", "a")) == "done");
  CHECK(tree.apply(remove_file("/x", "a")) == "unchanged");
  CHECK(tree.apply(remove_file("/no/x", "a")) == "unchanged");
  fs::create_symlink("y", tree.at("/x"));
  test::put(tree.at("/y"), "a");
  CHECK(tree.apply(remove_file("/x", "a")) == "conflict");
  CHECK(tree.last.message.find("found a symbolic link") != std::string::npos);
}

TEST_CASE("what a killed writer left behind is removed, also when the work is done") {
  Tree tree;
  test::put(tree.at("/x"), "a");
  test::put(tree.at("/.x.sharefs-4194305"), "half"); // no such process: beyond the largest pid
  test::put(tree.at("/.x.sharefs-4194305.1"), "half");
  test::put(tree.at("/.x.sharefs-1"), "of a living process");
  test::put(tree.at("/.x.sharefs-notes"), "of a person");
  CHECK(tree.apply(File{"/x", "b", "a", 0644}) == "unchanged");
  CHECK_FALSE(fs::exists(tree.at("/.x.sharefs-4194305")));
  CHECK_FALSE(fs::exists(tree.at("/.x.sharefs-4194305.1")));
  CHECK(fs::exists(tree.at("/.x.sharefs-1")));
  CHECK(fs::exists(tree.at("/.x.sharefs-notes")));
  test::put(tree.at("/.z.sharefs-4194305"), "half");
  CHECK(tree.apply(remove_file("/z", "a")) == "unchanged");
  CHECK_FALSE(fs::exists(tree.at("/.z.sharefs-4194305")));
}

TEST_CASE("a killed writer's leftover lies beside the file that a link leads to") {
  Tree tree;
  test::put(tree.at("/real/y"), "a");
  fs::create_symlink("real/y", tree.at("/x"));
  test::put(tree.at("/real/.y.sharefs-4194305"), "half");
  CHECK(tree.apply(File{"/x", "b", "a", 0644}) == "unchanged");
  CHECK_FALSE(fs::exists(tree.at("/real/.y.sharefs-4194305")));
}

TEST_CASE("a file that even root may not replace names the flags; a hard link is reported") {
  Tree tree;
  test::put(tree.at("/x"), "a");
  const sys::Fd file(::open(tree.at("/x").c_str(), O_RDONLY | O_CLOEXEC));
  int flags = FS_IMMUTABLE_FL;
  if (::geteuid() == 0 && ::ioctl(file.get(), FS_IOC_SETFLAGS, &flags) == 0) {
    CHECK(tree.apply(File{"/x", "a", "b", 0644}) == "permission");
    CHECK(tree.last.hint.starts_with("`lsattr -d " + tree.at("/x") + " " + tree.at("/") + "` shows the flags i and a"));
    flags = 0;
    REQUIRE(::ioctl(file.get(), FS_IOC_SETFLAGS, &flags) == 0);
  }
  fs::create_hard_link(tree.at("/x"), tree.at("/other"));
  std::string note;
  CHECK(perform(File{"/x", "a", "b", 0644}, tree.system, [&](const std::string& text, bool) { note = text; }) ==
        Outcome::done);
  CHECK(note == "/x had another hard link, which keeps the content of before");
  CHECK(test::content_of(tree.at("/other")) == "a");
}

TEST_CASE("a directory that somebody else has made since the plan: a mount point may be one, an export may not") {
  Tree tree;
  if (::geteuid() != 0)
    return;
  REQUIRE(tree.apply(make_directory("/sticky", 01777)) == "done");
  fs::create_directory(tree.at("/sticky/planted"));
  REQUIRE(::chown(tree.at("/sticky/planted").c_str(), 4711, 4711) == 0);
  CHECK(tree.apply(make_directory("/sticky/planted")) == "unchanged");
  CHECK(tree.apply(make_directory("/sticky/planted", 0755, {}, true)) == "permission");
  CHECK(tree.last.message.find("others could replace `planted`") != std::string::npos);
  CHECK(tree.apply(make_directory("/sticky/own", 0755, {}, true)) == "done");
  CHECK(tree.apply(make_directory("/sticky/own", 0755, {}, true)) == "unchanged");
}

TEST_CASE("Directory is made and removed") {
  Tree tree;
  CHECK(tree.apply(make_directory("/d", 02775)) == "done");
  CHECK(tree.mode("/d") == 02775);
  CHECK(tree.apply(make_directory("/d", 0700)) == "unchanged");
  CHECK(tree.mode("/d") == 02775); // it is not ours to change
  CHECK(tree.apply(make_directory("/d/e", 0700)) == "done");
  CHECK(tree.mode("/d/e") == 02700); // the inherited set-group-id bit stays
  CHECK(tree.apply(make_directory("/no/e", 0700)) == "not_found");
  test::put(tree.at("/f"), "");
  CHECK(tree.apply(make_directory("/f")) == "conflict");
  CHECK(tree.last.message == "/f: expected nothing or a directory, found a file");
  CHECK(tree.apply(make_directory("/f/g")) == "failed");

  CHECK(tree.apply(remove_directory("/d")) == "unchanged"); // it is not empty
  CHECK(fs::exists(tree.at("/d/e")));
  std::vector<std::string> notes;
  CHECK(perform(remove_directory("/d"), tree.system, [&](const std::string& text, bool lasting) {
          notes.push_back((lasting ? "lasting: " : "") + text);
        }) == Outcome::unchanged);
  CHECK(notes == std::vector<std::string>{"lasting: /d: the directory is not empty and stays"});
  const auto checked = check_action(remove_directory("/d/e"), tree.system);
  REQUIRE(checked);
  auto found = remove_directory("/d/e", 02700);
  found.access = Access{::geteuid(), ::getegid(), 02700, ""};
  CHECK(checked->intent == Action(found)); // for an exact undo
  CHECK(tree.apply(remove_directory("/d/e")) == "done");
  CHECK(tree.apply(remove_directory("/d/e")) == "unchanged");
  CHECK(tree.apply(remove_directory("/no/e")) == "unchanged");
  CHECK(tree.apply(remove_directory("/f")) == "conflict");
}

TEST_CASE("Link is made, pointed elsewhere and removed") {
  Tree tree;
  CHECK(tree.apply(make_link("/l", "one")) == "done");
  CHECK(tree.apply(make_link("/l", "one")) == "unchanged");
  CHECK(tree.apply(make_link("/l", "two")) == "conflict");
  CHECK(tree.last.message == "/l: expected nothing, found a link to `one`");
  CHECK(tree.apply(Link{"/l", "zero", "two", {}}) == "conflict");
  CHECK(tree.last.message == "/l: expected a link to `zero`, found a link to `one`");
  CHECK(tree.apply(Link{"/l", "one", "two", {}}) == "done");
  CHECK(fs::read_symlink(tree.at("/l")) == "two");
  CHECK(tree.apply(Link{"/l", "one", "two", {}}) == "unchanged");
  CHECK(tree.apply(remove_link("/l", "one")) == "conflict");
  CHECK(tree.apply(remove_link("/l", "two")) == "done");
  CHECK(tree.apply(remove_link("/l", "two")) == "unchanged");
  CHECK(tree.apply(remove_link("/no/l", "two")) == "unchanged");
  CHECK(tree.apply(Link{"/l", "one", "two", {}}) == "conflict");
  fs::create_directory(tree.at("/d"));
  CHECK(tree.apply(make_link("/d", "one")) == "conflict");
  CHECK(tree.apply(remove_link("/d", "one")) == "conflict");
  CHECK(tree.last.message == "/d: expected a link to `one`, found a directory");
}

TEST_CASE("Link leads to nothing that is gone, if it looks") {
  Tree tree;
  fs::create_symlink("one", tree.at("/l"));
  CHECK(tree.apply(Link{"/l", "one", "two", {}, true}) == "conflict");
  CHECK(fs::read_symlink(tree.at("/l")) == "one");
  fs::create_directory(tree.at("/two"));
  CHECK(tree.apply(Link{"/l", "one", "two", {}, true}) == "done");
}

TEST_CASE("Link clears up after one that was killed before its rename") {
  Tree tree;
  const auto leftover = tree.at("/" + temporary_name("l", "link"));
  fs::create_symlink("one", tree.at("/l"));
  fs::create_symlink("two", leftover);
  CHECK(tree.apply(Link{"/l", "two", "one", {}}) == "unchanged"); // the undo of the killed one
  CHECK_FALSE(fs::is_symlink(leftover));
  fs::create_symlink("two", leftover);
  CHECK(tree.apply(Link{"/l", "one", "two", {}}) == "done");
  CHECK(fs::read_symlink(tree.at("/l")) == "two");
  CHECK_FALSE(fs::is_symlink(leftover));
}

TEST_CASE("Rename never replaces") {
  Tree tree;
  test::put(tree.at("/a/f"), "x");
  CHECK(tree.apply(Rename{"/a", "/b", {}}) == "done");
  CHECK(test::content_of(tree.at("/b/f")) == "x");
  CHECK(tree.apply(Rename{"/a", "/b", {}}) == "unchanged");
  CHECK(tree.apply(Rename{"/c", "/d", {}}) == "conflict");
  fs::create_directory(tree.at("/a")); // an empty directory is what rename(2) would replace
  CHECK(tree.apply(Rename{"/b", "/a", {}}) == "conflict");
  CHECK(tree.last.message == "/a: expected nothing, found a directory");
  CHECK(fs::exists(tree.at("/b/f")));
  CHECK(tree.apply(Rename{"/b", "/no/b", {}}) == "not_found");
}

TEST_CASE("Rename completes one that was killed between a file's two names") {
  Tree tree;
  test::put(tree.at("/a"), "x");
  fs::create_hard_link(tree.at("/a"), tree.at("/b"));
  CHECK(tree.apply(Rename{"/a", "/b", {}}) == "done");
  CHECK_FALSE(fs::exists(tree.at("/a")));
  CHECK(test::content_of(tree.at("/b")) == "x");
  test::put(tree.at("/c"), "x"); // the same content is not the same file
  CHECK(tree.apply(Rename{"/b", "/c", {}}) == "conflict");
}

TEST_CASE("links of the tree do not lead out of the root") {
  Tree tree;
  test::TemporaryRoot outside;
  fs::create_directory(tree.at("/in"));
  fs::create_symlink(outside.path(), tree.at("/out"));
  fs::create_symlink("/in", tree.at("/link"));
  fs::create_symlink("../../../../../../in", tree.at("/dots"));
  CHECK(tree.apply(make_directory("/out/d")) == "not_found");
  CHECK_FALSE(fs::exists(outside.path() + "/d"));
  CHECK(tree.apply(make_directory("/link/d")) == "done");
  CHECK(tree.apply(make_directory("/dots/e")) == "done");
  CHECK(fs::exists(tree.at("/in/d")));
  CHECK(fs::exists(tree.at("/in/e")));
  CHECK(tree.apply(make_directory("/../../x")) == "done");
  CHECK(fs::exists(tree.at("/x")));
  CHECK(tree.apply(make_directory("/")) == "failed");
  CHECK(tree.apply(make_directory("x")) == "failed");
}

TEST_CASE("root follows only root's own links") {
  if (::geteuid() != 0)
    return; // for others the kernel's permissions are the limit
  Tree tree;
  fs::create_directory(tree.at("/secret"));
  fs::create_symlink("secret", tree.at("/planted"));
  REQUIRE(::lchown(tree.at("/planted").c_str(), 54321, 54321) == 0);
  fs::create_symlink("planted", tree.at("/by-root")); // does not make it better
  for (const auto* path : {"/planted/d", "/by-root/d"}) {
    CHECK(tree.apply(make_directory(path)) == "permission");
    CHECK(tree.last.message == "/planted: `/planted` is a symbolic link of uid 54321");
  }
  CHECK(tree.apply(SetAccess{"/planted", {}, Access{0, 0, 0755, ""}}) == "permission");
  CHECK(fs::is_empty(tree.at("/secret")));
  fs::create_symlink("loop", tree.at("/loop"));
  CHECK(tree.apply(make_directory("/loop/d")) == "failed");
}

TEST_CASE("an actor works as that user and follows no link below the home") {
  Tree tree;
  const bool is_root = ::geteuid() == 0;
  const uid_t uid = is_root ? 54321 : ::geteuid();
  const gid_t gid = is_root ? 54322 : ::getegid();
  const Actor user{{"alice", uid, gid, {gid}, "/home/alice"}, "/home/alice"};
  fs::create_directories(tree.at("/home/alice/conda"));
  fs::create_directories(tree.at("/etc/secret"));
  for (const auto* path : {"/home/alice", "/home/alice/conda"})
    if (is_root)
      REQUIRE(::chown(tree.at(path).c_str(), uid, gid) == 0);

  CHECK(tree.apply(make_directory("/home/alice/conda/envs", 0750, user)) == "done");
  struct stat status{};
  REQUIRE(::stat(tree.at("/home/alice/conda/envs").c_str(), &status) == 0);
  CHECK(status.st_uid == uid);
  CHECK(status.st_gid == gid);
  CHECK(tree.apply(make_link("/home/alice/conda/envs/llm", "/data/llm", user)) == "done");
  CHECK(tree.apply(Rename{"/home/alice/conda/envs", "/home/alice/conda/old", user}) == "done");

  // What the user may not do, root does not do for them either.
  if (is_root) {
    CHECK(tree.apply(make_directory("/home/bob")) == "done");
    const Actor astray{user.user, "/home/bob"};
    CHECK(tree.apply(make_link("/home/bob/l", "x", astray)) == "permission");
  }
  // Planted links: on the way, and the home itself (one that root made is followed).
  fs::create_symlink("/etc/secret", tree.at("/home/alice/trap"));
  CHECK(tree.apply(make_link("/home/alice/trap/l", "x", user)) == "permission");
  CHECK(tree.last.message == "/home/alice/trap: `/home/alice/trap` is a symbolic link");
  CHECK(tree.apply(remove_link("/home/alice/trap/l", "x", user)) == "permission");
  fs::rename(tree.at("/home/alice"), tree.at("/home/moved"));
  fs::create_symlink("moved", tree.at("/home/alice"));
  CHECK(tree.apply(make_link("/home/alice/l", "x", user)) == "done");
  CHECK(fs::is_symlink(tree.at("/home/moved/l")));
  if (is_root) {
    REQUIRE(::lchown(tree.at("/home/alice").c_str(), 54399, 54399) == 0);
    CHECK(tree.apply(make_link("/home/alice/k", "x", user)) == "permission");
  }
  // Out of the home, whichever way it is written.
  for (const auto* path : {"/etc/l", "/home/alice/../bob/l", "/home/alice", "/home/alicex/l"}) {
    CHECK(tree.apply(make_link(path, "x", user)) == "permission");
    CHECK(tree.last.message.find("does not lie below `/home/alice`") != std::string::npos);
  }
}

TEST_CASE("files of an actor: written and removed as that user, through no link") {
  Tree tree;
  const bool is_root = ::geteuid() == 0;
  const uid_t uid = is_root ? 54321 : ::geteuid();
  const gid_t gid = is_root ? 54322 : ::getegid();
  const Actor user{{"alice", uid, gid, {gid}, "/home/alice"}, "/home/alice"};
  fs::create_directories(tree.at("/home/alice"));
  if (is_root)
    REQUIRE(::chown(tree.at("/home/alice").c_str(), uid, gid) == 0);
  const auto path = "/home/alice/.condarc";
  const File make{path, std::nullopt, "a", 0640, user};
  CHECK(tree.apply(make) == "done");
  CHECK(tree.apply(make) == "unchanged");
  struct stat status{};
  REQUIRE(::stat(tree.at(path).c_str(), &status) == 0);
  CHECK(status.st_uid == uid);
  CHECK((status.st_mode & 07777U) == 0640);
  const File change{path, "a", "b", 0644, user};
  CHECK(tree.apply(change) == "done");
  CHECK(tree.apply(File{path, "a", "c", 0644, user}) == "conflict");
  CHECK(tree.apply(*invert(change)) == "done");
  CHECK(test::content_of(tree.at(path)) == "a");
  const auto checked = check_action(remove_file(path, "a", 0644, user), tree.system);
  REQUIRE(checked);
  CHECK(checked->intent == Action(remove_file(path, "a", 0640, user)));
  CHECK(tree.apply(remove_file(path, "a", 0640, user)) == "done");
  CHECK(tree.apply(*invert(remove_file(path, "a", 0640, user))) == "done");
  CHECK(tree.mode(path) == 0640);

  // Links: at the end and on the way. What they lead to stays as it is.
  test::put(tree.at("/secret"), "a");
  fs::remove(tree.at(path));
  fs::create_symlink("/secret", tree.at(path));
  CHECK(tree.apply(change) == "conflict");
  CHECK(tree.apply(remove_file(path, "a", 0640, user)) == "conflict");
  fs::create_directory(tree.at("/etc"));
  fs::create_symlink("/etc", tree.at("/home/alice/trap"));
  CHECK(tree.apply(File{"/home/alice/trap/x", std::nullopt, "a", 0644, user}) == "permission");
  CHECK(tree.apply(File{"/x", std::nullopt, "a", 0644, user}) == "permission");
  if (is_root) { // what the user may not do
    fs::create_directory(tree.at("/home/alice/closed"));
    CHECK(tree.apply(File{"/home/alice/closed/x", std::nullopt, "a", 0644, user}) == "permission");
  }
  CHECK(test::content_of(tree.at("/secret")) == "a");
}

TEST_CASE("what was mounted when it was planned is what is changed, and not the bare mount point") {
  Tree tree;
  fs::create_directories(tree.at("/data/share"));
  struct stat status{};
  REQUIRE(::stat(tree.at("/data/share").c_str(), &status) == 0);
  const Actor actor{{"", ::geteuid(), ::getegid(), {}, ""}, "/data/share", status.st_dev, status.st_ino};
  const auto make = make_directory("/data/share/a", 0755, actor, true);
  CHECK(tree.apply(make) == "done");
  const Access now{::geteuid(), ::getegid(), 0755, ""};
  SetAccess set{"/data/share/a", now, now};
  set.after.mode = 0750;
  set.actor = actor;
  // Another file system at the same place: the one of before lies elsewhere.
  fs::rename(tree.at("/data/share"), tree.at("/data/old"));
  fs::create_directories(tree.at("/data/share/a"));
  CHECK(tree.apply(set) == "conflict");
  CHECK(tree.last.message == "/data/share: what was mounted there is not there now");
  CHECK(tree.apply(make_directory("/data/share/b", 0755, actor, true)) == "conflict");
  CHECK(tree.apply(*invert(Action(make))) == "conflict");
  CHECK(fs::exists(tree.at("/data/share/a")));
  CHECK_FALSE(fs::exists(tree.at("/data/share/b")));
  // Mounted anew it has another device number, and is known by its inode.
  fs::remove_all(tree.at("/data/share"));
  fs::rename(tree.at("/data/old"), tree.at("/data/share"));
  auto renewed = actor;
  ++renewed.device;
  CHECK(tree.apply(make_directory("/data/share/b", 0755, renewed, true)) == "conflict");
  CHECK(tree.apply(set) == "done");
  CHECK(tree.mode("/data/share/a") == 0750);
  set.actor = renewed;
  CHECK(tree.apply(*invert(Action(set))) == "done");
  CHECK(tree.apply(*invert(Action(make_directory("/data/share/a", 0755, renewed, true)))) == "done");
  CHECK_FALSE(fs::exists(tree.at("/data/share/a")));
  // No link below it is followed, whoever made it.
  fs::create_directories(tree.at("/etc"));
  fs::create_directory_symlink("../../etc", tree.at("/data/share/link"));
  CHECK(tree.apply(make_directory("/data/share/link/x", 0755, actor, true)) == "permission");
  CHECK_FALSE(fs::exists(tree.at("/etc/x")));
}
