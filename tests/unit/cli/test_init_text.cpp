#include "cli/commands/init/facts.hpp"

#include "config/load.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cli;

namespace {

sys::MountEntry nfs(std::string source, std::string target, std::string options = "rw,vers=4.2,hard") {
  sys::MountEntry entry;
  entry.id = 2;
  entry.parent = 1;
  entry.fs_type = "nfs4";
  entry.source = std::move(source);
  entry.target = std::move(target);
  entry.options = "rw,relatime";
  entry.super_options = std::move(options);
  return entry;
}

InitFacts with_mounts(std::vector<sys::MountEntry> mounts) {
  InitFacts facts;
  facts.hostname = "node1";
  facts.addresses = {"192.168.16.11"};
  facts.mounts = std::move(mounts);
  return facts;
}

InitFacts with_exports(const std::string& text) {
  auto facts = with_mounts({});
  facts.hostname = "storage1.cluster";
  facts.exports.push_back(exports::parse(text, "/etc/exports"));
  return facts;
}

config::Config config_of(const InitFacts& facts) {
  const auto text = init_text(facts);
  INFO(text);
  auto config = config::parse(text, "sharefs.yaml");
  REQUIRE(config);
  return *config;
}

bool says(const InitFacts& facts, const std::string& words) {
  const auto text = init_text(facts);
  INFO(text);
  return text.find(words) != std::string::npos;
}

} // namespace

TEST_CASE("nothing found: examples in comments that are right when they are uncommented", "[init]") {
  const InitFacts nothing;
  const auto config = config_of(nothing);
  CHECK(config.servers.empty());
  CHECK(config.mounts.empty());
  CHECK_FALSE(config.conda);
  CHECK(config.caches.local == std::vector<std::string>{"/var/cache/sharefs"});

  // Every commented line that is YAML.
  std::string uncommented = "version: 1\n";
  bool example = false;
  const auto text = init_text(nothing);
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    const auto line = text.substr(begin, end - begin);
    for (const auto* section : {"# servers:", "# mounts:", "# conda:", "# nodes:"})
      example = example || line == section;
    example = example && line.starts_with("# ");
    if (example)
      uncommented += line.substr(2) + "\n";
  }
  INFO(uncommented);
  const auto full = config::parse(uncommented, "");
  REQUIRE(full);
  CHECK(full->servers.size() == 1);
  CHECK(full->mounts.size() == 1);
  CHECK(full->conda);
  CHECK_FALSE(full->nodes.hostfile.empty());
}

TEST_CASE("exports as they stand in /etc/exports", "[init]") {
  const auto facts = with_exports("/mnt/share 10.0.0.1(rw,sync) 10.0.0.2(rw,sync) 10.0.0.3(ro)\n"
                                  "\"/with space\" *(rw,no_root_squash)\n"
                                  "/mnt/share @trusted(rw,sync)\n"
                                  "relative host(rw)\n");
  const auto config = config_of(facts);
  REQUIRE(config.servers.size() == 1);
  CHECK(config.servers[0].name == "storage1");
  CHECK(config.servers[0].address == "192.168.16.11");
  const auto& found = config.servers[0].exports;
  REQUIRE(found.size() == 2);
  CHECK(found[0].path == "/mnt/share");
  REQUIRE(found[0].clients.size() == 2);
  CHECK(found[0].clients[0].hosts == std::vector<std::string>{"10.0.0.1", "10.0.0.2", "@trusted"});
  CHECK(found[0].clients[0].options == std::vector<std::string>{"rw", "sync"});
  CHECK(found[0].clients[1].hosts == std::vector<std::string>{"10.0.0.3"});
  CHECK(found[0].clients[1].options == std::vector<std::string>{"ro"});
  CHECK(found[0].options.empty());
  CHECK(found[1].path == "/with space");
  REQUIRE(found[1].clients.size() == 1);
  CHECK(found[1].clients[0].hosts == std::vector<std::string>{"*"});
  CHECK(found[1].options == std::vector<std::string>{"rw", "no_root_squash"});
  CHECK(says(facts, "# not taken over: `path` is not an absolute path"));
  CHECK(says(facts, "take them out there"));
}

TEST_CASE("what init writes exports the same rights as the file that it read", "[init]") {
  for (const auto* text :
       {"/a h", "/a h()", "/a h(no_root_squash)", "/a h(rw) i(ro) j", "/a -rw,fsid=7 h(ro) i j(all_squash,anonuid=9)",
        "/a h(sec=krb5,rw,sec=sys,ro) i(sec=krb5p)", "/a -sec=krb5,rw h(ro)", "/a -sec=krb5,rw h(ro) i",
        "/a h(rw)\n/a h(ro) i(ro)\n", "/a h(rw,async,subtree_check,insecure) i(rw,fsid=3)", "/a (rw)", "/a h (rw)"}) {
    const auto facts = with_exports(std::string(text) + "\n");
    INFO(text << "\n" << init_text(facts));
    const auto config = config_of(facts);
    REQUIRE(config.servers[0].exports.size() == 1);
    const auto& found = config.servers[0].exports[0];
    std::map<std::string, exports::Settings> wanted, made;
    for (const auto& entry : facts.exports[0].exports)
      wanted.emplace(entry.client, entry.settings); // the first one counts
    for (const auto& client : found.clients)
      for (const auto& host : client.hosts)
        made.emplace(host, exports::make_export(found.path, host, found.options, {}, client.options).settings);
    CHECK(made == wanted);
  }
}

TEST_CASE("an exports file with an error", "[init]") {
  const auto facts = with_exports("/a host(rw)\n/b host(rx)\n/c host(rw)\n");
  CHECK(config_of(facts).servers[0].exports.size() == 1);
  CHECK(says(facts, "`sharefs export check`"));
}

TEST_CASE("NFS mounts with names of their own", "[init]") {
  const auto facts = with_mounts({
      nfs("storage1:/mnt/share", "/data/share"),
      nfs("storage2:/x", "/other/share", "rw,vers=3,soft,nolock"),
      nfs("[fe80::1]:/y/", "/mnt/sp ace", "ro,vers=4.1,hard"),
      nfs("storage1.example.com:/z", "/mnt/true"),
  });
  const auto config = config_of(facts);
  REQUIRE(config.mounts.size() == 4);
  CHECK(config.mounts[0].name == "share");
  CHECK(config.mounts[0].server == "storage1");
  CHECK(config.mounts[0].path == "/mnt/share");
  CHECK(config.mounts[0].at == "/data/share");
  CHECK(config.mounts[0].profile == "safe");
  CHECK(config.mounts[1].name == "share-2");
  CHECK(config.mounts[1].profile == "safe");
  CHECK(config.mounts[1].options == std::vector<std::string>{"soft", "suid", "dev", "vers=3", "nconnect=1", "nolock"});
  CHECK(config.mounts[2].name == "sp-ace");
  CHECK(config.mounts[2].at == "/mnt/sp ace");
  CHECK(config.mounts[2].server == "fe80::1");
  CHECK(config.mounts[2].path == "/y");
  CHECK(config.mounts[2].options == std::vector<std::string>{"ro", "suid", "dev", "vers=4.1", "nconnect=1"});
  CHECK(config.mounts[3].name == "share-3"); // `true` is no name in YAML
  // Short names are described, so that storage2 is not taken for a misspelt storage1.
  REQUIRE(config.servers.size() == 2);
  CHECK(config.servers[1].name == "storage2");
}

TEST_CASE("what sharefs.yaml cannot express becomes a comment", "[init]") {
  const auto facts = with_mounts({nfs("no-path", "/a"), nfs("s1:/x", "/b\nevil: true"), nfs("s1:/x", "/c")});
  const auto config = config_of(facts);
  REQUIRE(config.mounts.size() == 1);
  CHECK(config.mounts[0].at == "/c");
  CHECK(says(facts, "# not taken over: "));
}

TEST_CASE("names from outside cannot write configuration", "[init]") {
  auto facts = with_exports("\"/x\\012version: 2\" a(rw)\n");
  const auto exports = facts.exports;
  facts = with_mounts({nfs("s:/x", "/y", "rw\nmounts: {}"), nfs("s:/x", "/z\nmounts: {}"), nfs("s:/x", "/well")});
  facts.exports = exports;
  facts.hostname = "evil\nversion: 3";
  facts.not_taken = {{{"o", "x:/\nmounts: {}", "/z\nconda: {}", "9p\n", ""}}};
  const auto config = config_of(facts);
  CHECK(config.servers[0].exports.empty());
  CHECK_FALSE(config.conda);
  REQUIRE(config.mounts.size() == 1);
  CHECK(config.mounts[0].at == "/well");
}

TEST_CASE("storage that is no NFS, and NFS that nothing mounts at boot, is named and not taken over", "[init]") {
  auto facts = with_mounts({nfs("s1:/now", "/now")});
  facts.boot = {{{"/etc/fstab:1", "s1:/x", "/x", "nfs", "rw"}}};
  facts.not_taken = {{{"/etc/fstab:2", "localhost:/vol", "/gv", "glusterfs", ""}},
                     {{"/etc/fstab:3", "s1:/later", "/later", "nfs", "noauto"}},
                     {{"/etc/fstab:4", "s1:/now", "/now", "nfs4", "noauto"}}};
  const auto config = config_of(facts);
  REQUIRE(config.mounts.size() == 2);
  CHECK(config.mounts[0].at == "/now");
  CHECK(config.mounts[0].boot == "none");
  CHECK(config.mounts[1].at == "/x");
  CHECK(says(facts, "#   /etc/fstab:2: localhost:/vol on /gv (glusterfs, no NFS)\n"));
  CHECK(says(facts, "#   /etc/fstab:3: s1:/later on /later (not mounted at boot)\n"));
  CHECK_FALSE(says(facts, "#   /etc/fstab:4"));
  CHECK(summary_of(facts, init_text(facts)) ==
        "0 exports and 2 NFS mounts; not taken over: /gv (glusterfs), /later (not mounted at boot)");
}

TEST_CASE("a host with nothing but other storage has a file that parses", "[init]") {
  auto facts = with_mounts({});
  facts.not_taken = {{{"/etc/fstab:1", "mgs@tcp:/l", "/l", "lustre", ""}}};
  CHECK(config_of(facts).mounts.empty());
  facts = with_mounts({nfs("no-path", "/a")});
  CHECK(config_of(facts).mounts.empty());
  CHECK(summary_of(facts, init_text(facts)) == "0 exports and 0 NFS mounts");
}

TEST_CASE("long lists are wrapped", "[init]") {
  std::string line = "/mnt/share";
  for (int host = 0; host < 60; ++host)
    line += " 192.168.16." + std::to_string(host) + "(rw)";
  const auto facts = with_exports(line + "\n");
  CHECK(config_of(facts).servers[0].exports[0].clients.size() == 60);
  CHECK(says(facts, "          - 192.168.16.7\n"));
}

TEST_CASE("1,000 exports of as many clients, and as many mounts of one name", "[init]") {
  constexpr std::size_t k_many = 1'000;
  std::vector<sys::MountEntry> mounts;
  std::string lines = "/srv/all";
  for (std::size_t i = 0; i < k_many; ++i) {
    const auto number = std::to_string(i);
    mounts.push_back(nfs("s:/" + number, "/" + number + "/data"));
    lines += " n" + number + "(rw)";
  }
  for (std::size_t i = 0; i < k_many; ++i)
    lines += "\n/srv/" + std::to_string(i) + " *(ro)";
  auto facts = with_mounts(std::move(mounts));
  facts.exports.push_back(exports::parse(lines + "\n", "/etc/exports"));
  const auto config = config_of(facts);
  REQUIRE(config.mounts.size() == k_many);
  CHECK(config.mounts.front().name == "data");
  CHECK(config.mounts.back().name == "data-1000");
  REQUIRE(config.servers.front().exports.size() == k_many + 1);
  CHECK(config.servers.front().exports.front().clients.size() == k_many);
}
