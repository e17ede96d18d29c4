#include "config/keys.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace sharefs::config;

namespace {

struct KeyRow {
  std::string key;
  std::vector<std::string> right, wrong;
};

/// What a hint says to write, without the quotes of YAML; empty: it says nothing that could be copied.
std::string written_in(const std::string& hint) {
  for (const std::string front : {"write `", "for example `"})
    if (const auto begin = hint.find(front); begin != std::string::npos) {
      auto text = hint.substr(begin + front.size());
      text = text.substr(0, text.find('`'));
      return text.starts_with('"') ? text.substr(1, text.size() - 2) : text;
    }
  return "";
}

} // namespace

TEST_CASE("the rules of values, key by key", "[values]") {
  const std::vector<KeyRow> rules{
      {"mounts.*.at",
       {"/data", "/data/share", "/a b", "/daten/größe"},
       {"", "/", "data", "./data", "~/data", "$HOME/x", "/data/", "//data", "/a/../b", "/a/./b", "/a\n", "/a\x1b[0m"}},
      {"servers.*.exports[].path", {"/", "/mnt/share"}, {"", "mnt", "/mnt/", "/a//b"}},
      {"caches.local",
       {"/var/cache/sharefs", "$SLURM_TMPDIR", "${TMPDIR}", "$TMPDIR/hf", "${TMPDIR}/hf/x", "/local/$SLURM_JOB_ID/x",
        "/local/job${SLURM_JOB_ID}"},
       {"", "cache", "~/cache", "$", "${}", "$1", "${X", "${X:-/tmp}", "$(pwd)", "/a/$", "$X/", "$X//y", "$X/../y",
        "x$TMPDIR"}},
      {"nodes.list[].slots", {"1", "8", "007", "9999"}, {"", "0", "00", "010", "08", "x", "99999"}},
      {"conda.keep", {"1", "10", "007", "9999"}, {"", "0", "00", "010", "08", "-1", "99999"}},
      {"conda.envs[].keep", {"3"}, {"0", "010"}},
      {"nodes.hostfile", {"/data/share/hostfile"}, {"hostfile", "/data/../x"}},
      {"servers.*.address",
       {"192.168.16.1", "storage1", "storage1.example.com", "fd00::1", "fe80::1%eth0"},
       {"", "a b", "storage1:/x", "a,b", "-v", "[fd00::1]", std::string(300, 'a')}},
      {"servers.*.exports[].clients[]",
       {"192.168.16.11", "192.168.16.0/22", "*", "*.example.com", "@nodes", "gss/krb5", "fd00::/64", "node[1-3]"},
       {"", "a b", "a,b", "a(rw)", "-o"}},
      {"servers.*.exports[].options",
       {"rw", "sec=krb5:krb5p", "anonuid=65534", "fsid=0"},
       {"", "rw,sync", "rw sync", "(rw)"}},
      {"mounts.*.options",
       {"nconnect=4", "vers=4.2", "context=\"system_u:object_r:nfs_t:s0:c1,c2\""},
       {"", "rw,bg", "a b"}},
      {"servers.*.exports[].access.group", {"ml", "domain_users"}, {"", "domain users", "100", "a:b"}},
      {"servers.*.exports[].access.mode",
       {"2775", "0770", "777", "3775"},
       {"", "77", "02775", "2785", "rwx", "-775", "99999"}},
      {"mounts.*.shares[].path",
       {"outputs", "team a/outputs", "daten/größe", "..a", "x~"},
       {"", "/", "/outputs", ".", "..", "a/..", "../etc", "a/../../etc", "~/outputs", "a/", "a//b", "./a", "a/./b",
        "a\n", "a\x1b[0m"}},
      {"mounts.*.from",
       {"storage1:/mnt/share", "10.0.0.1:/", "[fd00::1]:/x", "nas.example.com:/vol/a b"},
       {"", "storage1", "storage1:", ":/x", "storage1:x", "/mnt/share", "storage1:/x/", "storage1:/a/../b", "[]:/x",
        "[fd00::1]/x", "a b:/x", "-o:/x"}},
      {"conda.envs[].name",
       {"llm_train", "py3.10", "größe", "a-b+c", "bases", std::string(200, 'x')},
       {"", "a/b", "/data/envs/a", ".", "..", ".x", "-x", "a b", "base", "root", "a:b", "a#b", "a\\b", "a\nb", "a\x7f",
        "a\xff", "x.sharefs-backup-20260101-000000", std::string(201, 'x')}},
      {"conda.store", {"/data/share/conda"}, {"", "/", "conda", "/data/../conda"}},
      {"conda.homes[].users",
       {"alice", "alice.smith", "alice@example.com", "DOMAIN\\alice", "host$", "_x", "Alice-1"},
       {"", "1000", "..", "../alice", "alice,bob", "-x", "~alice", "a:b", "*", "a b"}},
      {"conda.homes[].conda",
       {"miniconda3", "tools/conda", ".conda", "/opt/conda"},
       {"", "/", ".", "~/miniconda3", "../x", "a/", "./a", "a//b", "/opt/conda/"}},
      {"caches.local", {"/var/cache/sharefs", "/scratch"}, {"", "scratch", "/a/"}},
      {"caches.rules[].program", {"", "train_*.py", "train.py"}, {"src/train.py"}},
      {"caches.rules[].flag", {"--cache_dir", "-c"}, {"", "cache_dir", "--", "-", "--cache dir", "--cache=x"}},
  };
  for (const auto& [name, right, wrong] : rules) {
    const auto found = std::ranges::find(keys(), name, &Key::name);
    REQUIRE(found != keys().end());
    const Key& key = *found;
    for (const auto& value : right) {
      INFO(name << ": " << value);
      const auto complaint = check_value(key, value);
      INFO((complaint ? complaint->what : ""));
      CHECK_FALSE(complaint);
    }
    for (const auto& value : wrong) {
      INFO(name << ": " << value);
      const auto complaint = check_value(key, value);
      REQUIRE(complaint);
      CHECK_FALSE(complaint->what.empty());
      CHECK_FALSE(complaint->hint.empty());
      if (const auto written = written_in(complaint->hint); !written.empty())
        CHECK_FALSE(check_value(key, written));
    }
  }
}

TEST_CASE("names of servers and mounts", "[values]") {
  for (const std::string name : {"share", "storage1", "a.b-c_d", "2024", "größe", "共享"}) {
    INFO(name);
    CHECK_FALSE(check_name(name));
  }
  for (const std::string name :
       {"", "-a", "--all", ".", "..", ".x", "a/b", "a:b", "a b", "a,b", "a;b", "$x", "a\n", "*",
        "a\xe2\x80\xae"
        "b",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    INFO(name);
    CHECK(check_name(name));
  }
}
