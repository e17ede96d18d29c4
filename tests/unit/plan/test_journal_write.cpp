#include "journal_entries.hpp"
#include "journal_machine.hpp"

#include <mutex>
#include <set>
#include <thread>

using namespace sharefs;
using namespace sharefs::plan;
using test::JournalMachine;
using test::one_step;
namespace fs = std::filesystem;

TEST_CASE("entries are numbered, whatever the clock says; what has no number is none") {
  JournalMachine machine;
  const auto journal = machine.root.path() + "/var/lib/sharefs/journal/";
  std::vector<std::string> ids;
  for (int i = 0; i < 11; ++i) {
    ids.push_back(machine.record(one_step()));
    machine.system.machine.now -= std::chrono::hours(i); // set back
  }
  CHECK(ids.front() == "1");
  CHECK(ids.back() == "11");
  for (const auto* other : {"20260131-120000-4711", "1x", "0", "lost+found"})
    fs::copy(journal + "1", journal + other);
  std::vector<std::string> listed;
  const auto entries = test::entries_of(machine.journal);
  for (const auto& entry : *entries)
    listed.push_back(entry.id);
  CHECK(std::vector<std::string>(listed.rbegin(), listed.rend()) == ids);
  CHECK(machine.journal.newest_id() == "11");
  CHECK((*machine.journal.find_latest())->id == "11");
  CHECK(machine.record(one_step()) == "12");
}

TEST_CASE("the number of an entry that was set aside is not given again: an older one may name it as its undo") {
  JournalMachine machine;
  const auto journal = machine.root.path() + "/var/lib/sharefs/journal/";
  machine.record(one_step());
  const auto undo = machine.record(one_step());
  REQUIRE(machine.journal.mark_undone("1", undo));
  fs::rename(journal + undo, journal + undo + ".damaged");
  CHECK(machine.journal.newest_id() == "1");
  CHECK(machine.record(one_step()) == "3");
}

TEST_CASE("two runs at once get two entries") {
  JournalMachine machine;
  machine.record(one_step());
  const auto begin = [&machine] {
    return machine.journal.begin(one_step(), "", machine.system.machine.identity, machine.system.machine.now,
                                 {0, one_step().steps[0].action});
  };
  // apply() has the host lock; without it one of the two may fail, but neither gets the other's entry.
  std::vector<std::string> ids;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        if (const auto id = begin()) {
          const std::lock_guard lock(mutex);
          ids.push_back(*id);
        }
      });
  }
  CHECK_FALSE(ids.empty());
  CHECK(std::set<std::string>(ids.begin(), ids.end()).size() == ids.size());
}

TEST_CASE("the journal is for its owner's eyes") {
  JournalMachine machine;
  const auto old_mask = ::umask(0);
  const auto id = machine.record(one_step());
  ::umask(old_mask);
  const auto mode = [](const std::string& path) { return static_cast<unsigned>(fs::status(path).permissions()); };
  CHECK(mode(machine.root.path() + "/var/lib/sharefs") == 0700);
  CHECK(mode(machine.root.path() + "/var/lib/sharefs/journal") == 0700);
  CHECK(mode(machine.at(id, "")) == 0700);
  CHECK(mode(machine.at(id, "plan.json")) == 0600);
  CHECK(mode(machine.at(id, "steps.jsonl")) == 0600);
}

TEST_CASE("a state directory that others could write is refused") {
  JournalMachine machine;
  const auto begin = [&machine] {
    return machine.journal.begin(one_step(), "", machine.system.machine.identity, machine.system.machine.now,
                                 {0, one_step().steps[0].action});
  };
  const auto directory = machine.root.path() + "/var/lib/sharefs";
  fs::create_directories(machine.root.path() + "/var/lib/elsewhere");
  fs::create_directory_symlink("elsewhere", directory);
  REQUIRE_FALSE(begin());
  CHECK(begin().error().message.find("/var/lib/sharefs: is not a directory") != std::string::npos);
  fs::remove(directory);
  fs::create_directory(directory);
  ::chmod(directory.c_str(), 0777);
  REQUIRE_FALSE(begin());
  CHECK(begin().error().hint ==
        "look at what is in it, then run `chmod 0700 " + machine.root.path() + "/var/lib/sharefs`");
  ::chmod(directory.c_str(), 0755); // as a package makes it
  CHECK(begin());
  if (::geteuid() == 0) {
    REQUIRE(::chown(directory.c_str(), 54321, 54321) == 0);
    CHECK(begin().error().message.find("belongs to another user (uid 54321)") != std::string::npos);
  }
}

TEST_CASE("prune keeps the newest, and whatever still runs") {
  JournalMachine machine;
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i)
    ids.push_back(i == 1 ? machine.begin(one_step()) : machine.record(one_step())); // the second one was killed
  const auto self = machine.system.machine.identity;
  machine.system.machine.identity.pid = ::getpid();
  machine.system.machine.identity.boot_id = sys::own_boot_id();
  const auto running = machine.begin(one_step());
  machine.system.machine.identity = self;
  for (int i = 0; i < 3; ++i)
    ids.push_back(machine.record(one_step()));
  const auto journal = machine.root.path() + "/var/lib/sharefs/journal/";
  fs::create_directory(journal + ".new-x");
  test::put(journal + ".deleted-x/plan.json", "");
  REQUIRE(machine.journal.prune(3));
  std::vector<std::string> left;
  const auto entries = test::entries_of(machine.journal);
  for (const auto& entry : *entries)
    left.push_back(entry.id);
  CHECK(left == std::vector<std::string>{ids[8], ids[7], ids[6], running});
  CHECK_FALSE(fs::exists(journal + ".new-x"));
  CHECK_FALSE(fs::exists(journal + ".deleted-x"));
  REQUIRE(machine.journal.prune(200));
  CHECK(test::entries_of(machine.journal)->size() == 4);
}

TEST_CASE("what is no entry does not keep the journal from being pruned") {
  JournalMachine machine;
  for (int i = 0; i < 6; ++i)
    machine.record(one_step());
  const auto journal = machine.root.path() + "/var/lib/sharefs/journal/";
  const auto strange = journal + GENERATE(".swp", ".deleted-x/directory/file", "5");
  if (strange.ends_with("/5"))
    fs::remove_all(strange);
  test::put(strange, "");
  CHECK(machine.journal.prune(2));
  CHECK_FALSE(fs::exists(journal + "1"));
  CHECK(fs::exists(journal + "6"));
  CHECK(fs::exists(strange));
}

TEST_CASE("prune keeps the bytes below a bound, and the newest entry whatever it has") {
  JournalMachine machine;
  Plan large;
  large.add("g", "large", File{"/x", std::nullopt, std::string(100'000, 'x')});
  for (int i = 0; i < 5; ++i)
    machine.record(i == 0 || i == 4 ? large : one_step());
  REQUIRE(machine.journal.prune(200, 1'000'000));
  CHECK(test::entries_of(machine.journal)->size() == 5);
  REQUIRE(machine.journal.prune(200, 250'000)); // the plan, and the step that began, have the content
  CHECK(test::entries_of(machine.journal)->size() == 4);
  CHECK((*machine.journal.find_latest())->id == "5");
  REQUIRE(machine.journal.prune(200, 1));
  CHECK(test::entries_of(machine.journal)->size() == 1);
  CHECK(machine.record(one_step()) == "6");
}

TEST_CASE("2,000 entries") {
  JournalMachine machine;
  const auto first = machine.record(one_step());
  const auto journal = machine.root.path() + "/var/lib/sharefs/journal/";
  for (int i = 2; i <= 2'000; ++i) {
    const auto directory = journal + std::to_string(i);
    ::mkdir(directory.c_str(), 0700);
    for (const auto* name : {"/plan.json", "/steps.jsonl"}) // links cost less than copies
      REQUIRE(::link((journal + first + name).c_str(), (directory + name).c_str()) == 0);
  }
  CHECK(machine.record(one_step()) == "2001");
  CHECK((*machine.journal.find_latest())->id == "2001");
  REQUIRE(machine.journal.prune(200));
  const auto entries = test::entries_of(machine.journal);
  REQUIRE(entries->size() == 200);
  CHECK(entries->back().id == "1802");
}
