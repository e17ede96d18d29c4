// sharefs run: what others do between the decision and the making of its directories.
#include "cachefix/run_plan.hpp"
#include "cli/app.hpp"
#include "support/catch.hpp"
#include "support/count.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"
#include "sys/mounts/mount_table.hpp"

#include <filesystem>
#include <sstream>
#include <unistd.h>

using namespace sharefs;
using test::count_in;
namespace fs = std::filesystem;

namespace {

constexpr const char* k_caches = "/var/cache/sharefs";

/// A node with a share, on which `sharefs run` starts a training; its user is alice.
struct Node {
  test::TemporaryDirectory root;
  std::shared_ptr<test::ScriptedSystem> system = std::make_shared<test::ScriptedSystem>(root.path());
  Argv started;
  std::string err;
  int looked = 0; ///< how often the room in the directory of all users was asked for: the last look for a name

  Node() {
    system->machine.identity.user = "alice";
    system->machine.identity.uid = ::geteuid();
    system->machine.mounts = *sys::MountTable::parse("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
                                                     "2 1 0:9 / /share rw - nfs 10.0.0.1:/share rw,vers=3,nolock\n");
    fs::create_directories(root / k_caches);
    fs::create_directories(root / "share");
    fs::permissions(root / k_caches, fs::perms::all | fs::perms::sticky_bit);
    system->machine.on_exec = [this](const Argv& argv, const std::vector<std::string>&) { started = argv; };
  }

  /// `squat` is done after each look for a name, with its number.
  int run(const std::function<void(int)>& squat) {
    system->machine.on_entry = [&](const sys::EntryQuery& query, const auto&) -> std::optional<sys::Entry> {
      if (query.space && query.path.starts_with(k_caches))
        squat(++looked);
      return std::nullopt;
    };
    return call({"run", "--explain", "--", "python", "t.py", "--cache_dir", "/share/c"});
  }
  int call(Argv argv) {
    argv.insert(argv.begin(), "sharefs");
    std::istringstream in;
    std::ostringstream out_stream, err_stream;
    cli::Host host{[&](const std::string&) { return system; }, in, out_stream, err_stream, {}, {"PATH=/usr/bin"}, "/"};
    const int code = cli::run(argv, host);
    err = err_stream.str();
    return code;
  }
  /// Takes a name of that directory: with a file, because only root can make what belongs to others.
  void take(const std::string& name) const { root.write(std::string(k_caches).substr(1) + "/" + name, ""); }
  [[nodiscard]] std::string cache() const { return started.empty() ? "" : started.back(); }
};

} // namespace

TEST_CASE("attack: a user's name that is taken leads to the next directory, and it is said why", "[run]") {
  Node node;
  node.take("alice");
  fs::create_directories(node.root / "var/tmp");
  fs::permissions(node.root / "var/tmp", fs::perms::all | fs::perms::sticky_bit);
  (void)node.run([](int) {});
  INFO(node.err);
  CHECK(node.cache().starts_with("/var/tmp/sharefs-alice/"));
  CHECK(fs::is_directory(node.root / node.cache()));
  CHECK(count_in(node.err, "[SF414]") == 1);
  CHECK(count_in(node.err, "--cache_dir /share/c -> " + node.cache()) == 1);
}

TEST_CASE("a directory that cannot be made for another reason is an error, and the command is not started", "[run]") {
  Node node;
  CHECK(node.run([&](int) { // its own directory, with a file in the place of the cache
    node.take("alice/" + cachefix::cache_key("/share/c"));
    fs::permissions(node.root / (std::string(k_caches) + "/alice"), fs::perms::owner_all);
  }) == 125);
  CHECK(node.started.empty());
  CHECK(count_in(node.err, "error: ") == 1);
}

TEST_CASE("a usage error of run has an exit code that its command cannot have, whatever stands before it", "[run]") {
  Node node;
  for (const Argv& argv : {Argv{"run", "--wrong"}, {"--json", "run"}, {"--config", "/f", "run"}, {"--wait=1s", "run"}})
    CHECK(node.call(argv) == 125);
  for (const Argv& argv : {Argv{"--json", "mount", "--wrong", "run"}, {"--config", "run", "mount", "--wrong"}, {"-q"}})
    CHECK(node.call(argv) != 125);
}
