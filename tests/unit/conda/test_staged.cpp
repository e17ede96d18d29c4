#include "conda/staged.hpp"

#include "link_machine.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

using namespace sharefs;
using namespace sharefs::conda;
using test::FakeHomes;

namespace {

const GenerationPath k_generation{"/data/share/conda", "llm", 3, ""};
const std::string k_source = "/data/share/conda/.generations/llm/0003";
const std::string k_mark = k_source + "\n0\n"; // of one without a record

/// A stage of this process's user.
struct StageMachine : FakeHomes {
  const unsigned me = static_cast<unsigned>(::geteuid());
  const std::string copies = staged_directory("/stage", me, "/data/share/conda/llm");
  const std::string copy = copies + "/0003";

  std::optional<std::string> find() {
    const auto found = find_staged(*this, "/stage", me, k_generation);
    return found ? std::optional(found->tree.path) : std::nullopt;
  }
  /// What is planned, in words.
  std::vector<std::string> plan(StageRequest request) {
    request.name = "llm";
    request.what.source = k_source;
    if (request.what.state.empty())
      request.what.state = "0";
    const auto made = plan_stage(probe_staged(*this, "/stage", me, "/data/share/conda/llm"), request);
    std::vector<std::string> words = made.plan.notes;
    for (const auto& step : made.plan.steps) {
      auto text = (step.group.empty() ? "first: " : "") + plan::describe(step.action);
      for (auto at = text.find(copies); at != std::string::npos; at = text.find(copies))
        text.replace(at, copies.size(), "@");
      words.push_back(std::move(text));
    }
    words.emplace_back(made.copies ? "copies" : "copies nothing");
    return words;
  }
};

using Words = std::vector<std::string>;

} // namespace

TEST_CASE("a staged copy is used when it is whole, of this generation, and nobody else's", "[conda]") {
  StageMachine machine;
  CHECK(machine.copy == "/stage/" + std::to_string(machine.me) + "/%data%share%conda/llm/0003");
  machine.environment(machine.copy);
  CHECK_FALSE(machine.find()); // cut off
  machine.file(complete_mark(machine.copy));
  auto& mark = machine.entry(complete_mark(machine.copy));
  mark.content = k_mark;
  CHECK(machine.find() == machine.copy);
  SECTION("of another store") {
    mark.content = "/data/other/.generations/llm/0003\n0\n";
    CHECK_FALSE(machine.find());
  }
  SECTION("of an older generation, whose number was used again") {
    Generation record;
    record.created = 200;
    machine.file(k_source + ".json", format_generation(record));
    CHECK_FALSE(machine.find());
    mark.content = k_source + "\n200\n";
    CHECK(machine.find() == machine.copy);
    CHECK(machine.plan({.copy = "0003", .what = {.source = {}, .state = "200"}}) == Words{"copies nothing"});
    CHECK(machine.plan({.copy = "0003", .what = {.source = {}, .state = "300"}}) ==
          Words{"first: remove @/0003.complete", "write @/0003.complete", "copies"});
  }
  SECTION("of another user") {
    mark.uid = machine.me + 1;
    CHECK_FALSE(machine.find());
  }
  SECTION("in a directory that somebody else could replace") {
    machine.deny[""] = {"/stage"};
    CHECK_FALSE(machine.find());
  }
  SECTION("of another generation") {
    CHECK_FALSE(find_staged(machine, "/stage", machine.me, {"/data/share/conda", "llm", 2, ""}));
  }
  SECTION("something is mounted on it") {
    machine.entry(machine.copy).mount = machine.copy;
    CHECK_FALSE(machine.find());
  }
}

TEST_CASE("plan_stage: a copy that is not whole is made, and old ones go", "[conda]") {
  StageMachine machine;
  const StageRequest wanted{.copy = "0003"};
  CHECK(machine.plan(wanted) == Words{"write @/0003.complete", "copies"});
  CHECK(machine.plan({.copy = ""}) == Words{"copies nothing"});
  machine.environment(machine.copy); // cut off
  CHECK(machine.plan(wanted) == Words{"write @/0003.complete", "copies"});
  machine.file(complete_mark(machine.copy), "of another\n");
  CHECK(machine.plan(wanted) ==
        Words{"first: remove @/0003.complete", "write @/0003.complete", "copies"}); // not whole meanwhile
  machine.file(complete_mark(machine.copy), k_mark);
  CHECK(machine.plan(wanted) == Words{"copies nothing"});
  CHECK(machine.plan({.copy = ""}) ==
        Words{"first: remove @/0003.complete", "delete @/0003 with all in it", "copies nothing"});
  CHECK(machine.plan({.copy = "", .busy = {"0003"}}) ==
        Words{machine.copy + " stays: a command works with it", "copies nothing"});
  machine.environment(machine.copies + "/0002");
  CHECK(machine.plan(wanted) == Words{"delete @/0002 with all in it", "copies nothing"});
  machine.file(complete_mark(machine.copy), "of another\n"); // the old copy is deleted when the new one is complete
  CHECK(machine.plan(wanted) ==
        Words{"first: remove @/0003.complete", "write @/0003.complete", "delete @/0002 with all in it", "copies"});
}

TEST_CASE("plan_stage: files that were cut off are not whole because a command works with the generation", "[conda]") {
  StageMachine machine;
  const CopyMark image{.source = {}, .state = {}, .sha256 = std::string(64, 'a')};
  SECTION("where the image on the share was to be mounted, they are left") {
    machine.environment(machine.copy);
    auto lying = image;
    lying.share_owner = 2001;
    CHECK(machine.plan({.copy = "0003", .what = lying, .busy = {"0003"}}) == Words{"copies nothing"});
  }
  SECTION("a part of the image is no reason to copy files") {
    machine.directory(machine.copies);
    machine.file(machine.copies + "/.0003.sqfs.part");
    CHECK(machine.plan({.copy = "0003", .what = image, .busy = {"0003"}}) ==
          Words{"make directory @/0003", "mount @/0003.sqfs on @/0003", "write @/0003.complete", "copies"});
  }
}

TEST_CASE("plan_stage: an image is mounted by its number, and goes when a later one is there", "[conda]") {
  StageMachine machine;
  const CopyMark image{.source = {}, .state = {}, .sha256 = std::string(64, 'a')};
  const StageRequest wanted{.copy = "0003", .what = image};
  const Words all{"mount @/0003.sqfs on @/0003", "write @/0003.complete"};
  const auto with = [](Words first, const Words& more) {
    first.insert(first.end(), more.begin(), more.end());
    return first;
  };
  CHECK(machine.plan(wanted) == with({"make directory @/0003"}, with(all, {"copies"})));
  machine.environment(machine.copy); // files that were cut off
  CHECK(machine.plan(wanted) ==
        with({"first: delete @/0003 with all in it", "make directory @/0003"}, with(all, {"copies"})));
  SECTION("of files that a command works with more are copied") {
    auto busy = wanted;
    busy.busy = {"0003"};
    CHECK(machine.plan(busy) == Words{"write @/0003.complete", "copies"});
  }
  machine.file(machine.copy + ".sqfs");
  machine.file(complete_mark(machine.copy), k_mark + image.sha256 + "\n");
  CHECK_FALSE(machine.find()); // not mounted, as after a reboot
  CHECK(machine.plan(wanted) == Words{"mount @/0003.sqfs on @/0003", "copies nothing"});
  CHECK(machine.plan({.copy = "0003"}) == Words{"mount @/0003.sqfs on @/0003", "copies nothing"});
  SECTION("that this kernel cannot mount any more is of no use") {
    CHECK(machine.plan({.copy = "0003", .mounts_images = false}) == Words{"first: remove @/0003.complete",
                                                                          "first: delete @/0003.sqfs with all in it",
                                                                          "write @/0003.complete", "copies"});
  }
  SECTION("that somebody has written into is compared first") {
    machine.entry(machine.copy + ".sqfs").mtime += 1;
    const auto words = machine.plan(wanted);
    CHECK(words.front() == "first: remove @/0003.complete");
    CHECK(words.back() == "copies");
  }
  auto& tree = machine.entry(machine.copy);
  tree.mount = machine.copy;
  tree.fs_type = "nfs";
  CHECK_FALSE(machine.find()); // something else lies over it
  tree.fs_type = "squashfs";
  CHECK(machine.find() == machine.copy);
  CHECK(machine.plan(wanted) == Words{"copies nothing"});
  const Words gone{"unmount @/0003", "remove directory @/0003", "delete @/0003.sqfs with all in it"};
  CHECK(machine.plan({.copy = ""}) == with({"first: remove @/0003.complete"}, with(gone, {"copies nothing"})));
  const auto later = machine.plan({.copy = "0004", .what = image});
  CHECK(Words(later.begin() + 1, later.begin() + 4) ==
        Words{"make directory @/0004", "mount @/0004.sqfs on @/0004", "write @/0004.complete"});
  CHECK(Words(later.begin() + 4, later.end() - 1) == gone);
  SECTION("of another generation with this number") {
    const auto words = machine.plan({.copy = "0003", .what = {.source = {}, .state = "7", .sha256 = image.sha256}});
    CHECK(Words(words.begin(), words.begin() + 2) == Words{"first: remove @/0003.complete", "first: unmount @/0003"});
  }
  SECTION("files take its place") {
    const auto words = machine.plan({.copy = "0003", .what = {.source = {}, .state = "7"}});
    CHECK(words == Words{"first: remove @/0003.complete", "first: unmount @/0003",
                         "first: delete @/0003.sqfs with all in it", "write @/0003.complete", "copies"});
  }
}

TEST_CASE("plan_stage: an image on the share is mounted where it lies, and a copy takes its place", "[conda]") {
  StageMachine machine;
  const CopyMark image{.source = {}, .state = {}, .sha256 = std::string(64, 'a')};
  const StageRequest lying{.copy = "0003",
                           .what = {.source = {}, .state = {}, .sha256 = image.sha256, .share_owner = 2001}};
  const auto mount = "mount " + k_source + ".sqfs on @/0003";
  CHECK(machine.plan(lying) == Words{"make directory @/0003", mount, "write @/0003.complete", "copies nothing"});
  const auto mark = k_mark + image.sha256 + "\nowner=2001\n";
  CHECK(mount_of_image("/s/0003", parse_mark(mark), 0) ==
        plan::Mount{k_source + ".sqfs", "/s/0003", "squashfs", "ro,nosuid,nodev,owner=2001"});
  machine.environment(machine.copy);
  machine.file(complete_mark(machine.copy), mark);
  CHECK_FALSE(machine.find()); // not mounted
  auto& tree = machine.entry(machine.copy);
  tree.mount = machine.copy;
  tree.fs_type = "squashfs";
  CHECK(machine.find() == machine.copy);
  CHECK(machine.plan(lying) == Words{"copies nothing"});
  auto copied = lying;
  copied.what.share_owner = std::nullopt;
  CHECK(machine.plan(copied) == Words{"first: remove @/0003.complete", "first: unmount @/0003", "make directory @/0003",
                                      "mount @/0003.sqfs on @/0003", "write @/0003.complete", "copies"});
  copied.busy = {"0003"}; // what a command works with stays
  CHECK(machine.plan(copied) == Words{"copies nothing"});
}

TEST_CASE("plan_stage: a user's image is mounted by squashfuse, whose end is seen", "[conda]") {
  StageMachine machine;
  const CopyMark image{.source = {}, .state = {}, .sha256 = std::string(64, 'a')};
  const auto mark = k_mark + image.sha256 + "\n";
  CHECK(mount_of_image("/s/0003", parse_mark(mark), 2001) ==
        plan::Mount{"/s/0003.sqfs", "/s/0003", "fuse.squashfuse", "ro,nosuid,nodev"});
  machine.environment(machine.copy);
  machine.file(machine.copy + ".sqfs");
  machine.file(complete_mark(machine.copy), mark);
  auto& tree = machine.entry(machine.copy);
  tree.mount = machine.copy;
  tree.fs_type = "fuse.squashfuse_ll";
  CHECK(machine.find() == machine.copy);
  tree.kind = sys::EntryKind::unknown; // ENOTCONN
  CHECK_FALSE(machine.find());
  CHECK(machine.plan({.copy = "0003", .what = image, .uid = 2001}) ==
        Words{"first: unmount @/0003", "make directory @/0003", "mount @/0003.sqfs on @/0003", "copies nothing"});
}

TEST_CASE("stage_access: nobody is let in whom a directory above the generation keeps out", "[conda]") {
  StageMachine machine;
  machine.environment(k_source);
  const auto set = [&](const std::string& path, unsigned mode, unsigned gid, unsigned uid = 2002) {
    auto& entry = machine.entry(path);
    entry.mode = mode;
    entry.gid = gid;
    entry.uid = uid;
  };
  for (const auto* path : {"/", "/data", "/data/share", "/data/share/conda", "/data/share/conda/.generations",
                           "/data/share/conda/.generations/llm"})
    set(path, 0755, 0);
  set(k_source, 0700, 0); // the copy has its mode
  const auto access = [&] {
    const auto found = stage_access(machine, k_source);
    return found ? fmt::format("{:04o} {}", found->mode, found->gid ? std::to_string(*found->gid) : "-")
                 : found.error().message.substr(0, found.error().message.find(" keeps"));
  };
  CHECK(access() == "0755 -");
  machine.entry("/data").withheld = 06; // who may search it reaches what is below
  CHECK(access() == "0755 -");
  machine.entry("/data").withheld = 01;
  CHECK(access() == "/data has an ACL that");
  set("/", 0700, 0, 0); // as in an image of a system: only root reaches what is below
  CHECK(access() == "0700 -");
  set("/", 0755, 0);
  machine.entry("/data").withheld = 0;
  set("/data/share", 02770, 3000);
  CHECK(access() == "0750 3000");
  set("/data/share/conda", 0750, 3000);
  CHECK(access() == "0750 3000");
  set("/data/share/conda", 0710, 3001);
  CHECK(access() == "/data/share (mode 2770)");
  set("/data/share/conda", 0700, 3000);
  CHECK(access() == "/data/share/conda (mode 0700)");
  set("/data/share", 0755, 0);
  set("/data/share/conda", 0705, 3000); // all but its group
  CHECK(access() == "0705 3000");
  set("/data/share", 02770, 3001);
  CHECK(access() == "/data/share (mode 2770)");
  set("/data/share", 0705, 3001);
  CHECK(access() == "/data/share (mode 0705)");
  set("/data", 0700, 0, 0); // only root reaches what is below
  CHECK(access() == "0700 -");
  set("/data", 0755, 0, 0);
  machine.self().uid = 2001;
  CHECK(access() == "0700 -");
}

TEST_CASE("plan_stage: a copy that others could reach is closed to them first", "[conda]") {
  StageMachine machine;
  machine.environment(machine.copy);
  machine.file(complete_mark(machine.copy), k_mark);
  machine.entry(machine.copies).mode = 0755;
  CHECK(machine.plan({.copy = "0003"}) == Words{"copies nothing"});
  const auto words = machine.plan({.copy = "0003", .access = {0750, 3000}});
  REQUIRE(words.size() == 2);
  CHECK(words[0].starts_with("first: set access of @: "));
  CHECK(words[0].find("0750") != std::string::npos);
  machine.entry(machine.copies).mode = 0750;
  machine.entry(machine.copies).gid = 3000;
  CHECK(machine.plan({.copy = "0003", .access = {0750, 3000}}) == Words{"copies nothing"});
}

TEST_CASE("a copy is in use by whatever path a container has it", "[conda]") {
  const test::TemporaryDirectory root;
  const auto run = [&](const std::string& pid, const std::string& program) {
    std::filesystem::create_directories(root / ("proc/" + pid));
    std::filesystem::create_symlink(program, root / ("proc/" + pid + "/exe"));
  };
  run("900", "/stage/0/data-conda/llm/0001/bin/python");
  run("901", "/of/a/container/0/data-conda/llm/0002/bin/python");
  run("902", "/data/conda/.generations/llm/0003/bin/python"); // on the share
  run("903", "/stage/1000/data-conda/llm/0003/bin/python");   // the copy of another user
  StagedCopies staged;
  for (const std::string number : {"0001", "0002", "0003"})
    staged.copies.emplace_back().tree.path = "/stage/0/data-conda/llm/" + number;
  test::ScriptedSystem system(root.path());
  CHECK(busy_copies(system, {}, staged) == std::set<std::string>{"0001", "0002"});
}
