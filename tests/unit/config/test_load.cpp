#include "config/load.hpp"
#include "support/catch.hpp"
#include "support/same_config.hpp"
#include "support/tree_file.hpp"

#include <utility>

using namespace sharefs;
using namespace sharefs::config;

namespace {

// As it stands in the design: comments, flow and block style mixed.
constexpr const char* k_example = R"(version: 1
servers:
  storage1:
    address: 192.168.16.1
    exports:
      - path: /mnt/share
        clients: [192.168.16.11, 192.168.16.12]   # hosts, CIDR networks, wildcards, netgroups
        options: [rw, sync, no_subtree_check]     # defaults; root_squash unless asked otherwise
        access: {group: ml}                       # mode 2770; or open (1777), or keep
mounts:
  share: {from: "storage1:/mnt/share", at: /data/share, profile: safe, boot: auto}
conda:
  store: /data/share/conda
  envs: [llm_train]
  homes: {users: [alice, bob], conda: miniconda3}
caches:
  local: /var/cache/sharefs
nodes: {hostfile: /data/share/hostfile}
watch: {recover: stale}
)";

Config parsed(std::string_view yaml) {
  const auto config = parse(yaml, "sharefs.yaml");
  INFO((config ? "" : config.error().message + "\n" + config.error().context));
  REQUIRE(config);
  return *config;
}

} // namespace

TEST_CASE("parse: the example of the design, value by value", "[load]") {
  const auto config = parsed(k_example);
  CHECK(config.version == 1);
  CHECK(config.file == "sharefs.yaml");
  REQUIRE(config.servers.size() == 1);
  const auto& server = config.servers.front();
  CHECK(server.name == "storage1");
  CHECK(server.address == "192.168.16.1");
  CHECK(server.origin == Origin{"sharefs.yaml", 3, 3});
  REQUIRE(server.exports.size() == 1);
  const auto& item = server.exports.front();
  CHECK(item.name == "storage1:/mnt/share");
  CHECK(item.path == "/mnt/share");
  REQUIRE(item.clients.size() == 2);
  CHECK(item.clients[1].hosts == std::vector<std::string>{"192.168.16.12"});
  CHECK(item.clients[1].options.empty());
  CHECK(item.options == std::vector<std::string>{"rw", "sync", "no_subtree_check"});
  CHECK(item.access == Access{Access::Kind::group, "ml", 02770});
  CHECK(item.origin.text() == "sharefs.yaml:6:9");
  REQUIRE(config.mounts.size() == 1);
  const auto& mount = config.mounts.front();
  CHECK(mount.name == "share");
  CHECK(mount.server == "storage1");
  CHECK(mount.address == "192.168.16.1");
  CHECK(mount.path == "/mnt/share");
  CHECK(mount.at == "/data/share");
  CHECK(mount.profile == "safe");
  CHECK(mount.options.empty());
  CHECK(mount.boot == "auto");
  CHECK(mount.origin.text() == "sharefs.yaml:11:3");
  REQUIRE(config.conda);
  CHECK(config.conda->store == "/data/share/conda");
  CHECK(config.conda->names() == std::vector<std::string>{"llm_train"});
  REQUIRE(config.conda->homes.size() == 1);
  CHECK(config.conda->homes[0].users == std::vector<std::string>{"alice", "bob"});
  CHECK(config.conda->homes[0].conda == "miniconda3");
  CHECK(config.conda->homes[0].origin.text() == "sharefs.yaml:15:3");
  CHECK(config.caches.local == std::vector<std::string>{"/var/cache/sharefs"});
  CHECK(config.nodes.hostfile == "/data/share/hostfile");
  REQUIRE(config.watch);
  CHECK(config.watch->interval == "30s");
}

TEST_CASE("parse: docs/sharefs.example.yaml says the same", "[load]") {
  const auto text = test::tree_file("docs/sharefs.example.yaml");
  REQUIRE_FALSE(text.empty());
  auto example = parsed(text);
  // Which the design has not:
  CHECK(std::exchange(example.mounts.at(0).shares, {}).size() == 1);
  CHECK(std::exchange(example.servers.at(0).exports.at(0).access.sticky, false));
  CHECK(test::without_origins(example) == test::without_origins(parsed(k_example)));
}

TEST_CASE("parse: what is not written has the default of config.hpp", "[load]") {
  const auto empty = parsed("version: 1\n");
  Config expected;
  expected.file = "sharefs.yaml";
  CHECK(empty == expected);

  const auto config = parsed("version: 1\n"
                             "servers: {s: {exports: [{path: /x, clients: [c]}]}}\n"
                             "mounts: {m: {from: \"s:/x\", at: /m}}\n"
                             "conda: {store: /m/conda}\n"
                             "caches: {rules: [{flag: --cache, place: keep}]}\n");
  CHECK(config.servers[0].address == "s"); // the name, if there is no address
  CHECK(config.servers[0].exports[0].options.empty());
  CHECK(config.servers[0].exports[0].access == Access{});
  Mount mount;
  CHECK(config.mounts[0].profile == mount.profile);
  CHECK(config.mounts[0].boot == mount.boot);
  Conda conda;
  CHECK(config.conda->homes == conda.homes);
  CHECK(config.caches.local == Caches{}.local);
  CHECK(config.caches.rules[0].program.empty());
}

TEST_CASE("parse: keys whose content is commented out are as if absent", "[load]") {
  Config expected;
  expected.file = "sharefs.yaml";
  CHECK(parsed("version: 1\nservers:\nmounts:\nconda:\ncaches:\nnodes:\n") == expected);
  const auto config = parsed("version: 1\nservers:\n  s:\n  t:\n    exports:\n    address: ~x\n");
  CHECK(config.servers.size() == 2);
  CHECK(config.servers[0].address == "s");
}

TEST_CASE("parse: directories of a mount have the access of exports", "[load]") {
  const auto mount = parsed("version: 1\nmounts:\n  share:\n    from: s:/x\n    at: /data\n    shares:\n"
                            "      - {path: outputs, access: {group: ml, sticky: true}}\n"
                            "      - {path: scripts/train, access: open}\n      - path: keep\n")
                         .mounts[0];
  REQUIRE(mount.shares.size() == 3);
  CHECK(mount.shares[0].path == "outputs");
  CHECK(mount.shares[0].access == Access{Access::Kind::group, "ml", 02770, true});
  CHECK(mount.shares[1].access.kind == Access::Kind::open);
  CHECK(mount.shares[2].access == Access{});
  CHECK(mount.shares[2].origin.line == 9);
}

TEST_CASE("parse: an environment may have settings of its own", "[load]") {
  const auto conda =
      *parsed("version: 1\nconda:\n  store: /s/conda\n  keep: 2\n  protect: false\n  envs:\n    - plain\n"
              "    - {name: llm, keep: 5, protect: true, stage: /scratch/conda}\n    - {name: some, keep: 7}\n")
           .conda;
  CHECK(conda.names() == std::vector<std::string>{"plain", "llm", "some"});
  CHECK(conda.envs[1].origin.text() == "sharefs.yaml:8:7");
  const auto settings = [&](const char* name) {
    const auto [keep, protect, stage, image] = conda.settings_of(name);
    return std::to_string(keep) + (protect ? " protected " : " ") + stage;
  };
  CHECK(settings("llm") == "5 protected /scratch/conda");
  CHECK(settings("some") == "7 /var/cache/sharefs/conda");
  CHECK(settings("plain") == "2 /var/cache/sharefs/conda");
  CHECK(settings("not listed") == settings("plain"));
}

TEST_CASE("parse: users may have conda in different places", "[load]") {
  const auto conda = *parsed("version: 1\nconda:\n  store: /s/conda\n  homes:\n    - {users: [alice, bob]}\n"
                             "    - users: [carol]\n      conda: /opt/carol/mambaforge\n")
                          .conda;
  REQUIRE(conda.homes.size() == 2);
  CHECK(conda.homes[0] == Homes{{"alice", "bob"}, "miniconda3", {"sharefs.yaml", 5, 7}});
  CHECK(conda.homes[1] == Homes{{"carol"}, "/opt/carol/mambaforge", {"sharefs.yaml", 6, 7}});
  CHECK(conda.users() == std::vector<std::string>{"alice", "bob", "carol"});
  CHECK(parsed("version: 1\nconda: {store: /s/conda, homes: []}\n").conda->homes.empty());
  CHECK(parsed("version: 1\nconda: {store: /s/conda, homes: }\n").conda->homes.empty());
}

TEST_CASE("parse: access in its three forms", "[load]") {
  const auto access = [](const std::string& value) {
    return parsed("version: 1\nservers: {s: {exports: [{path: /x, clients: [c], access: " + value + "}]}}")
        .servers[0]
        .exports[0]
        .access;
  };
  CHECK(access("keep").kind == Access::Kind::keep);
  CHECK(access("open").kind == Access::Kind::open);
  CHECK(access("{group: ml}") == Access{Access::Kind::group, "ml", 02770});
  CHECK(access("{group: ml, mode: \"0770\"}") == Access{Access::Kind::group, "ml", 0770});
  CHECK(access("{group: ml, sticky: true}") == Access{Access::Kind::group, "ml", 02770, true});
  CHECK(access("{group: ml, sticky: false}") == access("{group: ml}"));
}

TEST_CASE("parse: where a mount comes from", "[load]") {
  struct Row {
    std::string from, server, address, path;
  };
  const std::vector<Row> rows{{"s:/x", "s", "10.0.0.1", "/x"},
                              {"nas.example.com:/vol", "nas.example.com", "nas.example.com", "/vol"},
                              {"10.1.2.3:/", "10.1.2.3", "10.1.2.3", "/"},
                              {"[fd00::1]:/x/y", "fd00::1", "fd00::1", "/x/y"},
                              {"filer:/x", "filer", "filer", "/x"}};
  for (const auto& [from, server, address, path] : rows) {
    INFO(from);
    const auto config =
        parsed("version: 1\nservers: {s: {address: 10.0.0.1}}\nmounts: {m: {from: \"" + from + "\", at: /m}}\n");
    CHECK(config.mounts[0].server == server);
    CHECK(config.mounts[0].address == address);
    CHECK(config.mounts[0].path == path);
  }
}

TEST_CASE("parse: lists of caches, one place of conda for all, nested mounts", "[load]") {
  const auto config =
      parsed("version: 1\nmounts:\n  a: {from: \"h.x:/\", at: /data}\n  b: {from: \"h.x:/b\", at: /data/b}\n"
             "conda: {store: /data/conda, homes: {conda: /opt/conda}}\n"
             "caches:\n  local: [/scratch, /var/cache/sharefs]\n"
             "  rules:\n    - {program: \"train_*.py\", flag: --cache, place: local}\n");
  CHECK(config.conda->homes.at(0).conda == "/opt/conda");
  CHECK(config.caches.local == std::vector<std::string>{"/scratch", "/var/cache/sharefs"});
  CHECK(config.caches.rules[0].program == "train_*.py");
  CHECK(config.caches.rules[0].origin.text() == "sharefs.yaml:9:7");
}

TEST_CASE("nothing is mounted over what the system runs on") {
  const auto at = [](const std::string& path) {
    return parse("version: 1\nmounts: {m: {from: \"h.x:/x\", at: " + path + "}}\n", "f");
  };
  for (const auto* path : {"/etc", "/usr", "/var/lib", "/proc", "/proc/x", "/usr/bin", "/etc/systemd/system", "/tmp",
                           "/var/log", "/var/lib/sharefs", "/root"}) {
    INFO(path);
    REQUIRE_FALSE(at(path));
    CHECK(at(path).error().message.find("`at` would hide a directory of the system") != std::string::npos);
  }
  for (const auto* path : {"/home", "/opt", "/usr/local", "/usr/local/bin", "/var/lib/data", "/tmp/x",
                           "/etc/grid-security", "/var/spool/mail", "/root/work"})
    CHECK(at(path));
}

TEST_CASE("parse: an error has its place, the line with a caret, and a hint", "[load]") {
  const auto config = parse("version: 1\nmounts:\n  share: {from: \"s:/x\", att: /x}\n", "/etc/sharefs/sharefs.yaml");
  REQUIRE_FALSE(config);
  CHECK(config.error() == Error{ErrorCode::config, "/etc/sharefs/sharefs.yaml:3:25: unknown key `att`",
                                "did you mean `at`?",
                                "  3 |   share: {from: \"s:/x\", att: /x}\n    |                         ^"});
}

TEST_CASE("parse: of several mistakes the first in the file is told", "[load]") {
  // A wrong reference (found last) stands before an unknown key (found first).
  const auto config =
      parse("version: 1\nmounts: {m: {from: \"storage2:/x\", at: /m}}\nservers: {storage1: {adress: x}}\n", "f");
  REQUIRE_FALSE(config);
  CHECK(config.error().message == "f:2:20: no server is called `storage2`");
}
