// What happens to a copy: it is killed, the original changes, others rename beside it.
#include "given_tree.hpp"

#include "base/text.hpp"
#include "tree/here.hpp"

#include <sys/mount.h>
#include <sys/resource.h>

using namespace sharefs;
using namespace sharefs::test;
namespace fs = std::filesystem;

namespace {

constexpr bool k_kills = // built in
#ifdef SHAREFS_FAULT_INJECTION
    true;
#else
    false;
#endif

/// Every file in the copy that has its own name is whole; or it lies where nobody else comes, and the next run sees by
/// its time that it is not.
void check_no_half_file(const GivenTree& given) {
  if (!fs::exists(given.to))
    return;
  for (const auto& one : fs::recursive_directory_iterator(given.to)) {
    const auto name = fs::relative(one.path(), given.to).string();
    if (!one.is_regular_file() || one.path().filename().string().starts_with(".sharefs-copy-"))
      continue;
    CAPTURE(name);
    if (const auto time = status_of(given.to + "/" + name).st_mtim, wanted = status_of(given.from + "/" + name).st_mtim;
        time.tv_sec != wanted.tv_sec || time.tv_nsec != wanted.tv_nsec) {
      CHECK((status_of(one.path().parent_path()).st_mode & 0777U) == 0700);
      continue;
    }
    CHECK(given.copied(name) == given.directory.read("from/" + name));
  }
}

} // namespace

TEST_CASE("requirement 1: SIGKILL at any step of a copy, of the child or of its parent, and the next run finishes",
          "[kill]") {
  if (!k_kills)
    return;
  const bool parent = GENERATE(false, true);
  const GivenTree given;
  given.many(12);
  given.write("0/large", std::string(1'200'000, 'x'));
  fs::create_symlink("5", given.from + "/0/link");
  fs::create_hard_link(given.from + "/0/5", given.from + "/1/same");
  std::size_t killed = 0;
  for (std::size_t step = 0, round = 0; step < 150; step = 2 * step + 1, ++round) {
    CAPTURE(step, parent);
    const pid_t caller = ::fork();
    if (caller == 0) {
      ::setenv("SHAREFS_TEST_KILL_AT_TREE", (std::to_string(step) + (parent ? "+" : "")).c_str(), 1);
      const auto report = tree::copy({given.from}, {given.to}, {.threads = 3});
      ::_exit(report ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(caller, &status, 0) == caller);
    if (parent ? WIFSIGNALED(status) : WEXITSTATUS(status) == 1)
      ++killed;
    check_no_half_file(given);
    // A child whose parent was killed may take a moment to end.
    auto report = tree::copy({given.from}, {given.to}, {});
    for (int i = 0; !report && report.error().code == ErrorCode::busy && i < 20'000; ++i) {
      ::usleep(1000);
      report = tree::copy({given.from}, {given.to}, {});
    }
    CAPTURE(report ? "" : report.error().message);
    REQUIRE(report);
    CHECK(given.differences().empty());
    CHECK(given.names("to") == given.names("from"));
    if (round % 2 == 1) // from nothing, or from what is there
      fs::remove_all(given.to);
    else
      fs::remove(given.to + "/0/7");
  }
  CHECK(killed > 5);
}

TEST_CASE("a file that changes while it is copied is found, named and copied again, or an error", "[waits]") {
  const GivenTree given;
  given.write("quiet", "x");
  given.write("busy", std::string(4'000'000, 'a'));
  const pid_t writer = beside([&] {
    std::fstream file(given.from + "/busy", std::ios::in | std::ios::out);
    file << "b";
    file.close();
    ::usleep(1000); // a hundred changes while it is copied are as good as a million
  });
  tree::Options options;
  options.bytes_per_second = 8'000'000; // so that the writer has its turn
  auto error = tree::copy({given.from}, {given.to}, options);
  end(writer);
  REQUIRE_FALSE(error);
  CHECK(error.error().message == given.from + "/busy: changed while it was copied");
  CHECK_FALSE(fs::exists(given.to + "/busy"));
  CHECK(given.copied("quiet") == "x");

  // Once, by somebody who sees it begin: the child is slowed down by the limit.
  fs::remove_all(given.to);
  options.bytes_per_second = 4'000'000;
  bool touched = false;
  const auto report = tree::copy({given.from}, {given.to}, options, [&](const tree::Progress& progress) {
    if (progress.bytes >= 1'000'000 && !touched) {
      touched = true;
      std::fstream file(given.from + "/busy", std::ios::in | std::ios::out);
      file << "changed";
    }
  });
  REQUIRE(report);
  CHECK(touched);
  CHECK(given.differences().empty());
}

TEST_CASE("files that come while their directory is copied come along", "[waits]") {
  const GivenTree given;
  given.write("a/one", "x");
  given.write("a/b/large", std::string(4'000'000, 'x'));
  tree::Options options;
  options.bytes_per_second = 4'000'000;
  bool added = false;
  const auto report = tree::copy({given.from}, {given.to}, options, [&](const tree::Progress& progress) {
    if (progress.bytes >= 1'000'000 && !added) {
      added = true;
      given.write("a/late", "x");
      given.write("a/c/late", "x");
    }
  });
  REQUIRE(report);
  CHECK(added);
  CHECK(report->files == 4);
  CHECK(given.differences().empty());
}

TEST_CASE("attack: directories of the original are exchanged for links while it is copied and measured") {
  const GivenTree given;
  given.directory.write("victim/secret", "secret");
  for (int i = 0; i < 30; ++i)
    given.write(std::to_string(i) + "/file", "x");
  fs::create_directory_symlink("../victim", given.from + "/link");
  fs::create_symlink("../victim/secret", given.from + "/file link");
  given.write("file", "x");
  const pid_t attacker = beside([&, i = 0U]() mutable {
    ::renameat2(AT_FDCWD, (given.from + "/" + std::to_string(++i % 30)).c_str(), AT_FDCWD,
                (given.from + "/link").c_str(), RENAME_EXCHANGE);
    ::renameat2(AT_FDCWD, (given.from + "/file").c_str(), AT_FDCWD, (given.from + "/file link").c_str(),
                RENAME_EXCHANGE);
  });
  for (int round = 0; round < 4; ++round) {
    const auto report = tree::copy({given.from}, {given.to}, {.threads = 4, .remove_others = true});
    (void)tree::measure({given.from}, {});
    for (const auto& one : fs::recursive_directory_iterator(given.to))
      if (!one.is_symlink())
        CHECK(one.path().filename() != "secret");
    CHECK(given.directory.read("victim/secret") == "secret");
  }
  end(attacker);
}

TEST_CASE("attack: directories of the copy are exchanged for links while it is made and removed") {
  const GivenTree given;
  given.many(200);
  given.directory.write("victim/file", "precious");
  fs::create_directory(given.to);
  fs::create_directory_symlink("../victim", given.to + "/link");
  const pid_t attacker = beside([&, i = 0U]() mutable {
    ::renameat2(AT_FDCWD, (given.to + "/" + std::to_string(++i % 20)).c_str(), AT_FDCWD, (given.to + "/link").c_str(),
                RENAME_EXCHANGE);
  });
  for (int round = 0; round < 4; ++round) {
    (void)tree::copy({given.from}, {given.to}, {.threads = 4});
    CHECK(given.names("victim") == 1);
    CHECK(given.directory.read("victim/file") == "precious");
  }
  for (int round = 0; round < 4; ++round)
    (void)tree::remove({given.to}, {.threads = 4});
  end(attacker);
  CHECK(given.directory.read("victim/file") == "precious");
}

TEST_CASE("only a standstill ends a long work, and says so", "[waits]") {
  using namespace std::chrono_literals;
  const auto works = [&](int beats) {
    return tree::watched("/x", {.deadline = 1s}, {}, [&](const sys::ProgressCounters& counters) -> Result<int> {
      for (int i = 0; i < beats; ++i) {
        ::usleep(25'000);
        counters.add(0);
      }
      if (beats == 0)
        ::pause();
      return 7;
    });
  };
  CHECK(works(60) == 7); // in all longer than a second
  const auto hung = works(0);
  REQUIRE_FALSE(hung);
  CHECK(hung.error().code == ErrorCode::timeout);
  CHECK(hung.error().message == "/x: no progress for " + format_duration(1'000'000));
}

TEST_CASE("a full disk ends a copy at once, and the next run goes on") {
  const GivenTree given;
  given.many(50);
  given.write("large", std::string(3'000'000, 'x'));
  fs::create_directory(given.to);
  if (::mount("none", given.to.c_str(), "tmpfs", 0, "size=1m") != 0)
    return; // not allowed here
  const auto full = tree::copy({given.from}, {given.to}, {});
  REQUIRE_FALSE(full);
  CHECK(full.error().message.find("No space left on device") != std::string::npos);
  CHECK(full.error().hint.find("goes on from here") != std::string::npos);
  check_no_half_file(given);
  REQUIRE(::mount("none", given.to.c_str(), "tmpfs", MS_REMOUNT, "size=20m") == 0);
  const auto report = tree::copy({given.from}, {given.to}, {});
  const bool same = given.differences().empty();
  ::umount(given.to.c_str());
  REQUIRE(report);
  CHECK(same);
}

TEST_CASE("where others come a file has its name when it is finished, also if its original is of this moment") {
  if (!k_kills)
    return;
  const bool open_directory = GENERATE(true, false);
  const GivenTree given;
  given.write("file", "content");
  fs::create_directory(given.to);
  ::chmod(given.to.c_str(), open_directory ? 0755 : 0700);
  if (!open_directory) // it could have the copy's time by chance
    set_time(given.from + "/file", ::time(nullptr) + 1000, 0);
  for (int step = 0; step < 12; ++step) {
    const pid_t caller = ::fork();
    if (caller == 0) {
      ::setenv("SHAREFS_TEST_KILL_AT_TREE", std::to_string(step).c_str(), 1);
      ::_exit(tree::copy({given.from}, {given.to}, {}) ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(caller, &status, 0) == caller);
    CAPTURE(step);
    if (fs::exists(given.to + "/file")) {
      CHECK(given.copied("file") == "content");
      CHECK(status_of(given.to + "/file").st_mtim.tv_nsec == status_of(given.from + "/file").st_mtim.tv_nsec);
      fs::remove(given.to + "/file");
    } else {
      CHECK(WEXITSTATUS(status) == 1);
    }
    for (const auto& one : fs::directory_iterator(given.to))
      fs::remove(one.path());
    ::chmod(given.to.c_str(), open_directory ? 0755 : 0700);
  }
}

TEST_CASE("a directory that was made is not trusted with what its owner puts there meanwhile") {
  const GivenTree given;
  given.directory.write("victim", "");
  given.write("a/large", std::string(2'000'000, 'x'));
  for (int i = 0; i < 40; ++i)
    given.write("a/" + std::to_string(i), "content");
  const pid_t attacker = beside([&, i = 0U]() mutable {
    const auto name = given.to + "/a/" + std::to_string(++i % 40);
    (void)!::link((given.directory / "victim").c_str(), name.c_str());
    (void)!::symlink("../../victim", name.c_str());
  });
  for (int round = 0; round < 4; ++round) {
    CHECK(tree::copy({given.from}, {given.to}, {.threads = 4}));
    CHECK(given.differences().empty());
    CHECK(given.directory.read("victim").empty());
    (void)tree::remove({given.to}, {});
  }
  end(attacker);
}

TEST_CASE("256 descriptors are enough, for many threads, too", "[waits]") {
  const GivenTree given;
  for (int i = 0; i < 2000; ++i)
    given.write(std::to_string(i / 20 % 7) + "/" + std::to_string(i / 20) + "/a/" + std::to_string(i), "content");
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{256, 256};
    const bool limited = ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
    // The limit makes all of them wait with what they have open.
    const auto report = tree::copy({given.from}, {given.to}, {.threads = 64, .bytes_per_second = 28'000});
    const auto removed = tree::remove({given.to}, {.threads = 64});
    ::_exit(!limited ? 4 : !report ? 1 : !removed ? 3 : report->files == 2000 ? 0 : 5);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}
