// What sharefs.yaml says about one host: cli/commands/up/part.hpp.
#include "cli/commands/up/part.hpp"
#include "config/load.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

using namespace sharefs;
using namespace sharefs::cli;

namespace {

config::Config cluster(const std::string& clients) {
  const auto config = config::parse("version: 1\n"
                                    "servers:\n"
                                    "  storage1: {address: 10.0.0.1, exports: [{path: /srv, clients: [" +
                                        clients +
                                        "]}]}\n"
                                        "mounts:\n"
                                        "  share: {from: \"storage1:/srv/share\", at: /data/share}\n",
                                    "f");
  REQUIRE(config);
  return *config;
}

struct Cluster {
  test::TemporaryDirectory directory;
  test::ScriptedSystem system{directory.path()};
  Cluster(const std::string& hostname, const std::string& address) {
    system.machine.identity.hostname = hostname;
    system.machine.identity.addresses = {address};
  }
};

} // namespace

TEST_CASE("a mount is a host's where `clients:` may mean it", "[up]") {
  struct Row {
    const char* clients;
    bool mounted;
  };
  for (const auto& row : std::vector<Row>{{"10.0.0.2", true},
                                          {"10.0.0.3", false},
                                          {"10.0.0.3, 10.0.0.0/24", true},
                                          {"10.0.0.0/255.255.255.0", true},
                                          {"10.0.1.0/24", false},
                                          {"\"fd00::/64\"", false},
                                          {"gpu2", true},
                                          {"gpu2.cluster", true},
                                          {"\"gpu[1-4]\"", true},
                                          {"\"gpu[5-9]\"", false},
                                          {"\"*.cluster\"", true}, // the server knows
                                          {"\"@nodes\"", true},
                                          {"\"*\"", true}}) {
    INFO(row.clients);
    Cluster host("gpu2.cluster", "10.0.0.2");
    const auto config = cluster(row.clients);
    const auto part = find_part(host.system, config);
    CHECK(part.own.servers.empty());
    CHECK(part.mounts.size() == (row.mounted ? 1 : 0));
    CHECK(part.elsewhere.size() == (row.mounted ? 0 : 1));
    CHECK(check_named(host.system, config, part).has_value() == row.mounted);
  }
}

TEST_CASE("a client that is a name is looked up once, and left to the server without an answer", "[up]") {
  Cluster host("node", "10.0.0.2");
  std::size_t asked = 0;
  std::string answer;
  host.system.machine.on_run = [&](const sys::Command& command) -> Result<sys::Completed> {
    CHECK(command.argv == Argv{"getent", "--no-addrconfig", "ahosts", "storage7"});
    ++asked;
    sys::Completed done;
    done.exit_code = answer.empty() ? 2 : 0;
    done.out = answer;
    done.timed_out = answer == "late";
    return done;
  };
  const auto config = cluster("storage7, 10.0.0.9");
  CHECK(find_part(host.system, config).mounts.empty());
  CHECK(asked == 1);
  answer = "10.0.0.2 STREAM storage7\n";
  CHECK(find_part(host.system, config).mounts.size() == 1);
  answer = "late";
  CHECK(find_part(host.system, config).mounts.size() == 1);
}

TEST_CASE("a server has its own mounts, whoever its clients are", "[up]") {
  Cluster host("storage1", "10.0.0.1");
  const auto config = cluster("10.0.0.9");
  const auto part = find_part(host.system, config);
  CHECK(part.own.servers.size() == 1);
  CHECK(part.mounts.size() == 1);
  CHECK(describe(part) == "server `storage1` (1 export), 1 mount from storage1");
}

TEST_CASE("a mount of a server that the file does not describe is every host's", "[up]") {
  Cluster host("node", "10.0.0.2");
  const auto config = config::parse("version: 1\nmounts: {m: {from: \"nas:/x\", at: /m}}\n", "f");
  REQUIRE(config);
  CHECK(find_part(host.system, *config).mounts.size() == 1);
}

TEST_CASE("what is exported without the file of sharefs is taken down, too", "[up]") {
  Cluster host("storage1", "10.0.0.1"); // a `down` that was cut off before `exportfs -r`
  const auto config = cluster("10.0.0.9");
  const auto own = find_part(host.system, config).own;
  host.directory.write("etc/exports", "");
  host.directory.write("var/lib/nfs/etab", "/mnt/other\t10.0.0.9(rw,sync)\n");
  const auto nothing = find_exports(host.system, config, own, true);
  REQUIRE(nothing);
  CHECK_FALSE(nothing->has_value());
  host.directory.write("var/lib/nfs/etab", "/srv\t10.0.0.9(rw,sync)\n");
  const auto found = find_exports(host.system, config, own, true);
  REQUIRE(found);
  CHECK(found->has_value());
}

TEST_CASE("a mount that is missing because it is for other hosts is no fault here", "[up]") {
  Cluster host("gpu2", "10.0.0.2");
  auto config = cluster("10.0.0.3"); // the only mount of the file: then it is the file that forgets this host
  mounts::MountState state;
  state.point = mounts_for_host(host.system, config).front();
  std::vector states{state};
  leave_out_elsewhere(host.system, &config, states);
  CHECK(states.size() == 1);
  auto& other = config.mounts.emplace_back(config.mounts.front());
  std::tie(other.name, other.server, other.at) = std::tuple("other", "nas", "/other");
  states.front().health = mounts::Health::hung;
  leave_out_elsewhere(host.system, &config, states);
  CHECK(states.size() == 1);
  states.front().health = mounts::Health::missing;
  leave_out_elsewhere(host.system, &config, states);
  CHECK(states.empty());
}

TEST_CASE("a file without servers and mounts has a part for every host", "[up]") {
  Cluster host("node", "10.0.0.2");
  const auto config = config::parse("version: 1\ncaches: {local: /local}\n", "f");
  REQUIRE(config);
  CHECK(check_named(host.system, *config, find_part(host.system, *config)));
}
