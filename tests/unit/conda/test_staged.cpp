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
  const std::string copies = staged_directory("/stage", me, k_generation.store, "llm");
  const std::string copy = copies + "/0003";

  /// Mounted on the copy, as the kernel shows it.
  void mount_image() {
    auto& root = entry(copy);
    root.mount = copy;
    root.fs_type = "squashfs";
  }
  std::optional<std::string> find() { return find_staged(*this, "/stage", me, k_generation); }
  /// "mount X", "removed: 1 2" and the like of what is planned.
  std::vector<std::string> plan(StageRequest request) {
    request.name = "llm";
    request.source = k_source;
    const auto made = plan_stage(probe_staged(*this, "/stage", me, k_generation.store, "llm"), request);
    std::vector<std::string> words = made.plan.notes;
    for (const auto& step : made.plan.steps) {
      auto text = (step.group.empty() ? "first: " : "") + plan::describe(step.action);
      for (auto at = text.find(copies); at != std::string::npos; at = text.find(copies))
        text.replace(at, copies.size(), "@");
      words.push_back(std::move(text));
    }
    words.emplace_back(!made.makes                            ? "makes nothing"
                       : *made.makes == StageFormat::squashfs ? "makes an image"
                                                              : "makes a directory");
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
    CHECK(machine.plan({.number = 3, .created = 200}) == Words{"makes nothing"});
    CHECK(machine.plan({.number = 3, .created = 300}) ==
          Words{"first: remove @/0003.complete", "write @/0003.complete", "makes a directory"});
  }
  SECTION("of another user") {
    mark.uid = machine.me + 1;
    CHECK_FALSE(machine.find());
  }
  SECTION("in a directory that somebody else could exchange") {
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
  SECTION("an image is used where it is mounted only") {
    mark.content = k_mark + "squashfs\n";
    CHECK_FALSE(machine.find()); // after a reboot
    machine.mount_image();
    CHECK(machine.find() == machine.copy);
    machine.entry(machine.copy).fs_type = "tmpfs";
    CHECK_FALSE(machine.find());
  }
}

TEST_CASE("plan_stage: a directory", "[conda]") {
  StageMachine machine;
  const StageRequest wanted{.number = 3};
  CHECK(machine.plan(wanted) == Words{"write @/0003.complete", "makes a directory"});
  CHECK(machine.plan({.number = 0}) == Words{"makes nothing"});
  machine.environment(machine.copy); // cut off
  CHECK(machine.plan(wanted) == Words{"write @/0003.complete", "makes a directory"});
  machine.file(complete_mark(machine.copy), "of another\n");
  CHECK(machine.plan(wanted) ==
        Words{"first: remove @/0003.complete", "write @/0003.complete", "makes a directory"}); // not whole meanwhile
  machine.file(complete_mark(machine.copy), k_mark);
  CHECK(machine.plan(wanted) == Words{"makes nothing"});
  CHECK(machine.plan({.number = 0}) ==
        Words{"first: remove @/0003.complete", "delete @/0003 with all in it", "makes nothing"});
  CHECK(machine.plan({.number = 0, .busy = {3}}) ==
        Words{machine.copy + " stays: a command works with it", "makes nothing"});
  machine.environment(machine.copies + "/0002");
  machine.file(machine.copies + "/new-0001.squashfs");
  CHECK(machine.plan(wanted) == Words{"delete 1 file in @", "delete @/0002 with all in it", "makes nothing"});
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
  set("/data/share", 02770, 3000);
  CHECK(access() == "0750 3000");
  set("/data/share/conda", 0750, 3000);
  CHECK(access() == "0750 3000");
  set("/data/share/conda", 0710, 3001);
  CHECK(access() == "/data/share (mode 2770)");
  set("/data/share/conda", 0700, 3000);
  CHECK(access() == "/data/share/conda (mode 0700)");
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
  CHECK(machine.plan({.number = 3}) == Words{"makes nothing"});
  const auto words = machine.plan({.number = 3, .access = {0750, 3000}});
  REQUIRE(words.size() == 2);
  CHECK(words[0].starts_with("first: set access of @: "));
  CHECK(words[0].find("0750") != std::string::npos);
  machine.entry(machine.copies).mode = 0750;
  machine.entry(machine.copies).gid = 3000;
  CHECK(machine.plan({.number = 3, .access = {0750, 3000}}) == Words{"makes nothing"});
}

TEST_CASE("plan_stage: an image", "[conda]") {
  StageMachine machine;
  const StageRequest wanted{.number = 3, .format = StageFormat::squashfs};
  const Words from_nothing{"make directory @/0003", "mount @/0003.squashfs on @/0003", "write @/0003.complete"};
  const auto followed_by = [&](Words words, const std::string& last) {
    words.insert(words.end(), from_nothing.begin(), from_nothing.end());
    words.push_back(last);
    return words;
  };
  CHECK(machine.plan(wanted) == followed_by({}, "makes an image"));
  SECTION("instead of a directory that was begun") {
    machine.environment(machine.copy);
    CHECK(machine.plan(wanted) == followed_by({"first: delete @/0003 with all in it"}, "makes an image"));
    CHECK(machine.plan({.number = 3, .format = StageFormat::squashfs, .busy = {3}}) ==
          Words{"write @/0003.complete", "makes a directory"}); // with which a command still works
  }
  SECTION("that is there") {
    machine.file(image_of(machine.copy));
    CHECK(machine.plan(wanted) == followed_by({}, "makes nothing"));
    machine.file(complete_mark(machine.copy), k_mark + "squashfs\n");
    CHECK(machine.plan(wanted) == Words{from_nothing[0], from_nothing[1], "makes nothing"}); // after a reboot
    machine.directory(machine.copy);
    machine.mount_image();
    CHECK(machine.plan(wanted) == Words{"makes nothing"});
    CHECK(machine.plan({.number = 0}) == Words{"first: remove @/0003.complete", "unmount @/0003",
                                               "remove directory @/0003", "delete 1 file in @", "makes nothing"});
    CHECK(machine.plan({.number = 3}) == Words{"makes nothing"}); // whatever its form
    machine.file(complete_mark(machine.copy), "of another\n");
    CHECK(machine.plan({.number = 3}) == Words{"first: remove @/0003.complete", "first: unmount @/0003",
                                               "first: remove directory @/0003", "first: delete 1 file in @",
                                               "write @/0003.complete", "makes a directory"});
  }
}

TEST_CASE("why_no_images: what this host lacks", "[conda]") {
  FakeHomes machine;
  std::set<std::string> fail_to_run;
  machine.machine().on_run = [&](const sys::Command& command) -> Result<sys::Completed> {
    sys::Completed done;
    done.exit_code = fail_to_run.contains(command.argv.back()) ? 1 : 0;
    return done;
  };
  CHECK(why_no_images(machine).empty());
  fail_to_run = {"squashfs"};
  CHECK(why_no_images(machine) == "this kernel has no squashfs");
  machine.file("/proc/filesystems", "nodev\tproc\n\tsquashfs\n");
  CHECK(why_no_images(machine).empty());
  fail_to_run = {"loop"};
  CHECK(why_no_images(machine) == "this host has no loop devices");
  machine.file("/dev/loop-control");
  CHECK(why_no_images(machine).empty());
  fail_to_run = {"-version"};
  CHECK(why_no_images(machine) == "`mksquashfs` is not installed (package squashfs-tools)");
  machine.self().uid = 1000;
  CHECK(why_no_images(machine) == "only root can mount one");
}

TEST_CASE("first_difference: names, kinds, sizes, seconds and contents", "[conda]") {
  const std::vector<tree::HashedFile> original{{"a", 0100644, 3, 10, 5, {1, 2}}, {"b", 0120777, 1, 10, 0, {3, 4}}};
  auto image = original;
  image[0].nanoseconds = 0; // which an image does not keep
  CHECK_FALSE(first_difference(original, image));
  SECTION("content") {
    image[1].hash.low = 5;
  }
  SECTION("mode") {
    image[1].mode = 0120755;
  }
  SECTION("size") {
    image[1].size = 2;
  }
  SECTION("second") {
    image[1].seconds = 11;
  }
  SECTION("one less") {
    image.pop_back();
  }
  if (image.size() < 2 || image[1] != original[1])
    CHECK(first_difference(original, image) == "b");
  image = original;
  image.push_back({"c", 0100644, 3, 10, 5, {1, 2}});
  CHECK(first_difference(original, image) == "c");
  image[1].path = "a2"; // it has this one, and no "b"
  CHECK(first_difference(original, image) == "a2");
}
