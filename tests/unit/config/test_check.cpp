#include "config/load.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::config;

namespace {

struct Row {
  std::string yaml;  ///< behind "version: 1\n"
  std::string error; ///< LINE:COLUMN: message
  std::string hint;
};

void check(const std::vector<Row>& rows) {
  for (const auto& [yaml, error, hint] : rows) {
    INFO(yaml);
    const auto config = parse("version: 1\n" + yaml, "f");
    REQUIRE_FALSE(config);
    CHECK(config.error().code == ErrorCode::config);
    CHECK(config.error().message == "f:" + error);
    CHECK(config.error().hint == hint);
    CHECK_FALSE(config.error().context.empty());
  }
}

} // namespace

TEST_CASE("unknown keys: did you mean, among the keys allowed there", "[check]") {
  check({
      {"serverss: {}", "2:1: unknown key `serverss`", "did you mean `servers`?"},
      {"servers: {s: {adress: x}}", "2:15: unknown key `adress`", "did you mean `address`?"},
      {"servers: {s: {path: x}}", "2:15: unknown key `path`", "`servers.s` has the keys `address`, `exports`"},
      {"servers:\n  s:\n    exports:\n      - path: /x\n        client: [a]", "6:9: unknown key `client`",
       "did you mean `clients`?"},
      {"mounts:\n  m:\n    form: \"s:/x\"\n    at: /x", "4:5: unknown key `form`", "did you mean `from`?"},
      {"conda: {store: /x, homes: {user: [a]}}", "2:28: unknown key `user`", "did you mean `users`?"},
      {"servers: {s: {exports: [{path: /x, clients: [c], access: {group: g, mod: \"0770\"}}]}}",
       "2:69: unknown key `mod`", "did you mean `mode`?"},
  });
}

TEST_CASE("duplicate keys and names", "[check]") {
  check({
      {"version: 1", "2:1: duplicate key `version`", "it stands on line 1 already; keep one of them"},
      {"mounts:\n  m: {from: \"h.x:/\", at: /x, at: /y}", "3:30: duplicate key `at`",
       "it stands on line 3 already; keep one of them"},
      {"servers:\n  s: {}\n  \"s\": {}", "4:3: duplicate key `s`", "it stands on line 3 already; keep one of them"},
  });
}

TEST_CASE("missing keys are told at their parent", "[check]") {
  check({
      {"mounts:\n  m: {from: \"h.x:/\"}", "3:3: `mounts.m` has no key `at`", "add `at: ...` (mount point)"},
      {"mounts:\n  m:", "3:3: `mounts.m` has no key `from`",
       "add `from: ...` (SERVER:/PATH; SERVER is a name of servers: or any host)"},
      {"servers:\n  s:\n    exports:\n      - path: /x", "5:9: `servers.s.exports[0]` has no key `clients`",
       "add `clients: ...` (who may mount it: hosts, CIDR networks, wildcards (quoted: `\"*\"`), @netgroups)"},
      {"conda: {}", "2:1: `conda` has no key `store`", "add `store: ...` (directory of the shared environments)"},
  });
  const auto config = parse("mounts: {}\n", "f");
  REQUIRE_FALSE(config);
  CHECK(config.error().message == "f:1:1: the key `version` is missing");
  CHECK(config.error().hint == "begin the file with `version: 1`");
}

TEST_CASE("wrong types: a scalar is what its source says, and the hint says what to quote", "[check]") {
  const std::string with_mode = "servers: {s: {exports: [{path: /x, clients: [c], access: {group: g, mode: ";
  check({
      {with_mode + "0755}}]}}", "2:75: `mode` must be text, but `0755` is a number in YAML", "quote it: `\"0755\"`"},
      {"conda: {store: /x, homes: {users: [yes]}}", "2:36: `users` must be text, but `yes` is a boolean in YAML",
       "quote it: `\"yes\"`"},
      {"conda: {store: /x, envs: [3.10]}", "2:27: `envs` must be text, but `3.10` is a number in YAML",
       "quote it: `\"3.10\"`"},
      {"mounts: {no: {from: \"h.x:/\", at: /x}}", "2:10: `no` is a boolean in YAML, not a name", "quote it: `\"no\"`"},
      {"servers: []", "2:10: `servers` must be a mapping, not a list", "write `NAME:` or `KEY:` instead of `- `"},
      {"servers: storage1", "2:10: `servers` must be a mapping, not text",
       "write its keys below it, indented by two spaces"},
      {"conda:\n  store:/x", "3:3: `conda` must be a mapping, not text", "put a space after the `:`"},
      {"servers: {s: {exports: {path: /x}}}", "2:24: `exports` must be a list, not a mapping",
       "begin each entry with `- `"},
      {"servers: {s: {exports: [/x]}}", "2:25: `servers.s.exports[0]` must be a mapping, not text",
       "write its keys below it, indented by two spaces"},
      {"mounts:\n  m:\n    from: \"h.x:/\"\n    at: /x\n    options: ro,nolock",
       "6:14: `options` must be a list, not text", "write `options: [ro, nolock]`"},
      {"mounts: {m: {from: \"h.x:/\", at: [/x]}}", "2:33: `at` must be a single value, not a list",
       "write the value without brackets or `- `"},
      {"mounts: {m: {from: \"h.x:/\", at: }}", "2:29: `at` has no value", "write mount point"},
      {"mounts: {m: {from: \"h.x:/\", at: /x, profile: }}", "2:37: `profile` has no value",
       "leave the key out for its default"},
      {"servers: {s: {exports: [{path: /x, clients: [c], access: [open]}]}}",
       "2:58: `access` must be `keep`, `open` or {group, mode}, not a list",
       "write the value without brackets or `- `"},
      {"nodes: {hostfile: \"\"}", "2:19: `hostfile` is empty", "leave the key out for its default"},
      {"caches: {local: []}", "2:10: `local` is empty",
       "it needs at least one element (directory on a node's own disk, or a list of which the usable one with the most "
       "free space is "
       "taken)"},
  });
}

TEST_CASE("the version is the number 1", "[check]") {
  for (const std::string value : {"2", "\"1\"", "01", "1.0", "0x1", "one", "true"}) {
    INFO(value);
    const auto config = parse("version: " + value, "f");
    REQUIRE_FALSE(config);
    CHECK(config.error().message == "f:1:10: `version` must be the number 1, not `" + value + "`");
  }
}

TEST_CASE("choices", "[check]") {
  const std::string mount = "mounts: {m: {from: \"h.x:/\", at: /x, ";
  check({
      {mount + "profile: sfae}}", "2:46: `profile` must be `safe`, `recipe` or `immutable`, not `sfae`",
       "did you mean `safe`?"},
      {mount + "boot: yes}}", "2:43: `boot` must be `none` or `auto`, not `yes`",
       "auto: mounted at boot by what this machine has for it"},
      {"conda: {store: /x, link: hole}", "2:26: `link` must be `each` or `whole`, not `hole`", "did you mean `whole`?"},
      {"caches: {rules: [{flag: --x, place: remote}]}", "2:37: `place` must be `local` or `keep`, not `remote`",
       "local: moved to the node's own disk; keep: left where it is"},
      {"servers: {s: {exports: [{path: /x, clients: [c], access: opne}]}}",
       "2:58: `access` must be `keep`, `open` or {group, mode}, not `opne`", "did you mean `open`?"},
  });
}

TEST_CASE("lists: nothing twice, and no empty list of clients", "[check]") {
  check({
      {"conda: {store: /x, envs: [a, b, a]}", "2:33: `a` stands in this list already", "remove one of them"},
      {"servers: {s: {exports: [{path: /x, clients: []}]}}", "2:36: `clients` is empty",
       "it needs at least one element (who may mount it: hosts, CIDR networks, wildcards (quoted: `\"*\"`), "
       "@netgroups)"},
  });
}

TEST_CASE("merge keys are refused, not ignored", "[check]") {
  check({{"mounts:\n  a: &a {from: \"h.x:/\", at: /a}\n  b: {<<: *a, at: /b}",
          "4:7: merge keys (`<<`) are not supported", "write the keys out; aliases of values do work"}});
}

TEST_CASE("a document that is no mapping", "[check]") {
  struct Whole {
    std::string yaml, error, hint;
  };
  const std::vector<Whole> rows{
      {"", "1:1: the configuration is empty", "run `sharefs init` to write one, or begin with `version: 1`"},
      {"# nothing\n---\n", "1:1: the configuration is empty",
       "run `sharefs init` to write one, or begin with `version: 1`"},
      {"- a\n", "1:1: a configuration must be a mapping, not a list", "write `KEY: VALUE` instead of `- `"},
      {"version:1\n", "1:1: a configuration must be a mapping, not text", "put a space after the `:`"},
  };
  for (const auto& [yaml, error, hint] : rows) {
    INFO(yaml);
    const auto config = parse(yaml, "f");
    REQUIRE_FALSE(config);
    CHECK(config.error().message == "f:" + error);
    CHECK(config.error().hint == hint);
  }
}
