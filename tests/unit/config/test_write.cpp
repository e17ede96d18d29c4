#include "config/keys.hpp"
#include "config/load.hpp"
#include "support/catch.hpp"
#include "support/same_config.hpp"

#include <nlohmann/json.hpp>
#include <random>

using namespace sharefs;
using namespace sharefs::config;

namespace {

/// Valid configurations made of pieces that are hard to write: quotes, numbers, indicators, spaces.
class Samples {
 public:
  explicit Samples(unsigned seed) : m_random(seed) {}

  Config config() {
    Config config;
    for (std::size_t i = 0; i < below(4); ++i) {
      Server server;
      server.name = name(i);
      server.address = below(2) == 0 ? server.name : pick({"10.0.0.1", "fd00::1", "nas.example.com"});
      for (std::size_t k = 0; k < below(3); ++k)
        server.exports.push_back(one_export(server.name, path(k)));
      config.servers.push_back(server);
    }
    for (std::size_t i = 0; i < below(4); ++i)
      config.mounts.push_back(mount(config, i));
    if (below(2) == 0)
      config.conda = Conda{path(0),
                           environments(),
                           homes(),
                           static_cast<unsigned>(below(9) + 1),
                           below(2) == 0,
                           path(1),
                           below(2) == 0 ? "zstd" : "off",
                           below(2) == 0,
                           {}};
    if (below(2) == 0)
      config.caches.local = {path(1), path(2)};
    for (std::size_t i = 0; i < below(3); ++i)
      config.caches.rules.push_back(
          {pick({"", "*.py", "train_[ab]?.py", "#x"}), pick({"--cache_dir", "-c"}), pick({"local", "keep"}), {}});
    if (below(2) == 0)
      config.nodes = {{{"gpu[01-64]", "", "", {}, {}}, {"storage1", "10.0.0.1", "root", 8, {}}},
                      path(3),
                      pick({"", "gpus"}),
                      pick({"", "@gpus"}),
                      {{"a100", {"gpu[01-16]", "gpu20"}, {}}}};
    if (below(2) == 0)
      config.watch = Watch{pick({"stale", "all", "never"}),
                           pick({"30s", "1h", "1.5s", "7"}),
                           pick({"", "/var/lib/x.prom", "/a: b.prom"}),
                           below(2) == 0,
                           {}};
    return config;
  }

 private:
  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(m_random); }
  std::string pick(const std::vector<std::string>& from) { return from[below(from.size())]; }
  std::vector<std::string> list(std::vector<std::string> from) {
    std::shuffle(from.begin(), from.end(), m_random);
    from.resize(below(from.size() + 1));
    return from;
  }
  std::vector<Environment> environments() {
    std::vector<Environment> environments;
    for (const auto& name : list({"llm_train", "3.10", "no", "größe"})) {
      auto& one = environments.emplace_back();
      one.name = name;
      if (below(2) == 0)
        one.keep = static_cast<unsigned>(below(9) + 1);
      if (below(2) == 0)
        one.protect = below(2) == 0;
      if (below(3) == 0)
        one.stage = path(below(4));
    }
    return environments;
  }
  std::vector<Homes> homes() {
    std::vector<Homes> homes;
    for (std::size_t i = 0; i < below(3); ++i)
      homes.push_back({list({"alice" + std::to_string(i), "D\\bob" + std::to_string(i), i == 0 ? "on" : "x@y"}),
                       pick({"miniconda3", "/opt/con da", ".5"}),
                       {}});
    return homes;
  }
  std::string name(std::size_t i) { return pick({"storage", "yes", "0x1", "group", "größe"}) + std::to_string(i); }
  std::string path(std::size_t i) {
    return pick({"/mnt/share", "/a b", "/it's", "/q\"q", "/back\\slash", "/a: b", "/#x", "/größe", "/{a, b}", "/-"}) +
           std::to_string(i);
  }
  Export one_export(const std::string& server, const std::string& path) {
    Export result{server + ":" + path, path, {{{"*"}, {}, {}}}, list({"rw", "sync", "fsid=0", "no"}), {}, {}};
    for (const auto& client : list({"10.0.0.0/8", "@nodes", "node[1-3]", "&x", "!y"}))
      if (below(3) == 0)
        result.clients.push_back({{client, "z" + client}, {pick({"ro", "anonuid=1", "yes"}), "sync"}, {}});
      else
        result.clients.push_back({{client}, {}, {}});
    const auto kind = below(3);
    if (kind == 1)
      result.access.kind = Access::Kind::open;
    if (kind == 2)
      result.access = {Access::Kind::group, pick({"ml", "null"}), 0770, below(2) == 0};
    return result;
  }
  Mount mount(const Config& config, std::size_t i) {
    Mount mount;
    mount.name = "m" + name(i);
    const bool known = !config.servers.empty() && below(2) == 0;
    mount.server = known ? config.servers[below(config.servers.size())].name : pick({"h.example.com", "fd00::2"});
    mount.address = mount.server;
    for (const auto& server : config.servers)
      if (server.name == mount.server)
        mount.address = server.address;
    mount.path = below(3) == 0 ? "/" : path(i);
    mount.at = "/at/" + std::to_string(i) + path(i);
    mount.profile = pick({"safe", "recipe", "immutable"});
    mount.options = list({"nconnect=4", "context=\"a:b,c\"", "1"});
    mount.boot = pick({"none", "auto", "rc.local"});
    return mount;
  }

  std::mt19937 m_random;
};

} // namespace

TEST_CASE("to_yaml: what it writes parses to the same configuration", "[write]") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const auto config = Samples(seed).config();
    const auto yaml = to_yaml(config);
    INFO("seed " << seed << "\n" << yaml);
    const auto again = parse(yaml, "f");
    INFO((again ? "" : again.error().message));
    REQUIRE(again);
    CHECK(test::without_origins(*again) == config);
    CHECK(to_yaml(*again) == yaml);
  }
}

TEST_CASE("to_yaml: every key with its value, defaults included", "[write]") {
  const auto config =
      parse("version: 1\n"
            "servers: {s: {address: 10.0.0.1, exports: [{path: /x, clients: [\"*\"]}, {path: /y, clients: [a], "
            "access: {group: ml}}]}, t: }\n"
            "mounts: {m: {from: \"s:/x\", at: /m}}\nconda: {store: /m/c}\n"
            "caches: {rules: [{flag: --c, place: keep}]}\n",
            "f");
  REQUIRE(config);
  CHECK(to_yaml(*config) == R"(version: 1
servers:
  s:
    address: 10.0.0.1
    exports:
      - path: /x
        clients: ["*"]
        options: []
        access: keep
      - path: /y
        clients: [a]
        options: []
        access: {group: ml, mode: "2770", sticky: false}
  t:
    address: t
    exports: []
mounts:
  m:
    from: "s:/x"
    at: /m
    profile: safe
    options: []
    boot: none
    shares: []
conda:
  store: /m/c
  envs: []
  keep: 3
  protect: true
  stage: /var/cache/sharefs/conda
  image: zstd
  image_from_share: false
  homes: []
caches:
  local: [/var/cache/sharefs]
  min_free: 1G
  guard: run
  build: publish
  when: shared
  rules:
    - flag: "--c"
      place: keep
nodes:
  list: []
  groups: []
mirror: {}
)");
}

TEST_CASE("to_yaml: only a file with `watch:` asks for the daemon", "[write]") {
  CHECK_FALSE(parse("version: 1\n", "f")->watch);
  const auto asked = parse("version: 1\nwatch: {interval: 1s}\n", "f");
  REQUIRE(asked);
  REQUIRE(asked->watch);
  CHECK(asked->watch->origin.line == 2);
  CHECK(to_yaml(*asked).ends_with("watch:\n  recover: stale\n  interval: 1s\n  stage: false\n"));
}

TEST_CASE("to_yaml: one place of conda is a mapping, as it is mostly written; several are a list", "[write]") {
  const auto homes = [](const std::string& text) {
    const auto yaml = to_yaml(*parse("version: 1\nconda: {store: /m/c, homes: " + text + "}\n", "f"));
    const auto begin = yaml.find("  homes:");
    return yaml.substr(begin, yaml.find("caches:") - begin);
  };
  CHECK(homes("{users: [a]}") == "  homes:\n    users: [a]\n    conda: miniconda3\n");
  CHECK(homes("[{users: [a]}]") == homes("{users: [a]}"));
  CHECK(homes("[{users: [a]}, {users: [b], conda: /opt/b}]") ==
        "  homes:\n    - users: [a]\n      conda: miniconda3\n    - users: [b]\n      conda: /opt/b\n");
}

TEST_CASE("to_yaml: an environment without settings of its own is its name", "[write]") {
  const auto yaml = to_yaml(
      *parse("version: 1\nconda: {store: /m/c, envs: [a, {name: b}, {name: c, keep: 5, protect: false}]}\n", "f"));
  CHECK(yaml.find("  envs:\n    - a\n    - b\n    - name: c\n      keep: 5\n      protect: false\n  keep") !=
        std::string::npos);
}

TEST_CASE("to_json has the shape of the file", "[write]") {
  const auto config = parse("version: 1\nmounts: {m: {from: \"[fd00::1]:/x\", at: /m}}\n", "f");
  REQUIRE(config);
  CHECK(
      to_json(*config).dump() ==
      R"({"version":1,"servers":{},"mounts":{"m":{"from":"[fd00::1]:/x","at":"/m","profile":"safe","options":[],)"
      R"("boot":"none","shares":[]}},"caches":{"local":["/var/cache/sharefs"],"min_free":"1G","guard":"run","build":"publish","when":"shared","rules":[]},"nodes":{"list":[],"groups":[]},"mirror":{}})");
}
