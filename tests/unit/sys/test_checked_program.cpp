// A program of a user: what was checked is what runs.
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "sys/programs/process.hpp"

#include <atomic>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::sys;
namespace fs = std::filesystem;

namespace {

void put(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

struct Place {
  test::TemporaryDirectory root;
  std::string env = root.path() + "/env";
  User user{"of-the-test", ::geteuid(), ::getegid(), {::getegid()}, "/"};

  Place() {
    if (::geteuid() == 0)
      user = {"of-the-test", 4711, 4711, {4711}, "/"};
    REQUIRE(::chmod(root.path().c_str(), 0755) == 0);
    fs::create_directories(env + "/bin");
    fs::copy_file("/bin/sh", program());
    for (const auto& path : {env, env + "/bin", program()}) {
      REQUIRE(::chown(path.c_str(), user.uid, user.gid) == 0);
      REQUIRE(::chmod(path.c_str(), 0755) == 0);
    }
  }
  [[nodiscard]] std::string program() const { return env + "/bin/prog"; }
  static FileIdentity identity(const std::string& path) {
    struct stat status{};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    auto found = identity_of(status);
    found.changed = 0;
    return found;
  }
  [[nodiscard]] CheckedProgram checked() const {
    return {env, {.device = identity(env).device, .inode = identity(env).inode}, "bin/prog", identity(program())};
  }
  /// What it prints, or the error's code.
  [[nodiscard]] std::string run(const CheckedProgram& program,
                                const std::string& script = "echo ran; pwd -P; echo $0") {
    Command command;
    command.argv = {env + "/bin/prog", "-c", script};
    if (::geteuid() == 0)
      command.as = user;
    command.program = program;
    const auto done = run_process(command);
    message = done ? done->err : done.error().message;
    return done ? done->out : to_string(done.error().code);
  }
  std::string message;
};

} // namespace

TEST_CASE("a checked program runs in its directory, and finds itself there") {
  Place place;
  CHECK(place.run(place.checked()) == "ran\n" + fs::canonical(place.env).string() + "\n/proc/self/cwd/bin/prog\n");
  REQUIRE(::chmod(place.program().c_str(), 0775) == 0); // its user's own group, as many have one
  auto checked = place.checked();
  CHECK(place.run(checked, "echo ran") == "permission");
  checked.own_group = place.user.gid;
  CHECK(place.run(checked, "echo ran") == "ran\n");
}

TEST_CASE("a script runs by its interpreter, from the descriptor") {
  Place place;
  put(place.program(), "#!/bin/sh\necho script; pwd -P\n");
  CHECK(place.run(place.checked()) == "script\n" + fs::canonical(place.env).string() + "\n");
}

TEST_CASE("attack: another directory or another program than the checked one is not run") {
  Place place;
  const auto checked = place.checked();
  const auto away = place.root.path() + "/away";
  std::string expected = "conflict";
  SECTION("the directory is exchanged") {
    fs::rename(place.env, away);
    fs::copy(away, place.env, fs::copy_options::recursive);
  }
  SECTION("the directory is a link to another one") {
    fs::create_directories(away + "/bin");
    fs::copy_file("/bin/sh", away + "/bin/prog");
    fs::remove_all(place.env);
    fs::create_directory_symlink(away, place.env);
  }
  SECTION("the program is replaced") {
    fs::rename(place.program(), away);
    fs::copy_file("/bin/sh", place.program());
  }
  SECTION("the program is a link") {
    fs::rename(place.program(), away);
    fs::create_symlink(away, place.program());
    expected = "failed"; // ELOOP
  }
  SECTION("the way to it is a link") {
    fs::rename(place.env + "/bin", away);
    fs::create_directory_symlink(away, place.env + "/bin");
    expected = "failed";
  }
  CHECK(place.run(checked) == expected);
}

TEST_CASE("attack: a program that others may write is not run for a user") {
  Place place;
  const auto path = GENERATE(as<std::string>(), "", "/bin", "/bin/prog");
  SECTION("all may") {
    REQUIRE(::chmod((place.env + path).c_str(), 0757) == 0);
  }
  SECTION("a group may") {
    if (::geteuid() != 0)
      return;
    REQUIRE(::chown((place.env + path).c_str(), place.user.uid, 4712) == 0);
    REQUIRE(::chmod((place.env + path).c_str(), 0775) == 0);
  }
  SECTION("it is another user's") {
    if (::geteuid() != 0)
      return;
    REQUIRE(::chown((place.env + path).c_str(), 4712, 4712) == 0);
  }
  SECTION("it gives rights") {
    if (path != "/bin/prog")
      return;
    REQUIRE(::chmod((place.env + path).c_str(), 04755) == 0);
  }
  CHECK(place.run(place.checked()) == "permission");
}

TEST_CASE("attack: a directory that is exchanged for another one without end, while its program is started") {
  Place place;
  const auto checked = place.checked();
  const auto evil = place.root.path() + "/evil";
  fs::create_directories(evil + "/bin");
  put(evil + "/bin/prog", "#!/bin/sh\necho evil\n");
  REQUIRE(::chmod((evil + "/bin/prog").c_str(), 0755) == 0);
  std::atomic<bool> stop{false};
  std::jthread attacker([&] {
    while (!stop)
      ::renameat2(AT_FDCWD, place.env.c_str(), AT_FDCWD, evil.c_str(), RENAME_EXCHANGE);
  });
  int ran = 0, others = 0;
  for (int i = 0; i < 100; ++i) {
    const auto said = place.run(checked, "read -r line </proc/self/cwd/bin/prog; echo ran");
    ran += said == "ran\n" ? 1 : 0;
    others += said != "ran\n" && said != "conflict" ? 1 : 0;
  }
  stop = true;
  CHECK(others == 0);
  CHECK(ran > 0);
}
