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

TEST_CASE("unknown keys: did you mean, among the keys allowed there", "[read]") {
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

TEST_CASE("duplicate keys and names", "[read]") {
  check({
      {"version: 1", "2:1: duplicate key `version`", "it stands on line 1 already; keep one of them"},
      {"mounts:\n  m: {from: \"h.x:/\", at: /x, at: /y}", "3:30: duplicate key `at`",
       "it stands on line 3 already; keep one of them"},
      {"servers:\n  s: {}\n  \"s\": {}", "4:3: duplicate key `s`", "it stands on line 3 already; keep one of them"},
  });
}

TEST_CASE("missing keys are reported at their parent", "[read]") {
  check({
      {"mounts:\n  m: {from: \"h.x:/\"}", "3:3: `mounts.m` has no key `at`", "add `at: ...` (mount point)"},
      {"mounts:\n  m:", "3:3: `mounts.m` has no key `from`",
       "add `from: ...` (SERVER:/PATH; SERVER is a name of servers: or any host)"},
      {"servers:\n  s:\n    exports:\n      - path: /x", "5:9: `servers.s.exports[0]` has no key `clients`",
       "add `clients: ...` (who may mount it: hosts, CIDR networks, wildcards (quoted: `\"*\"`), @netgroups; "
       "{hosts, options} for hosts with options of their own)"},
      {"conda: {}", "2:1: `conda` has no key `store`", "add `store: ...` (directory of the shared environments)"},
  });
  const auto config = parse("mounts: {}\n", "f");
  REQUIRE_FALSE(config);
  CHECK(config.error().message == "f:1:1: the key `version` is missing");
  CHECK(config.error().hint == "begin the file with `version: 1`");
}

TEST_CASE("wrong types: a scalar is what its source says, and the hint says what to quote", "[read]") {
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
       "begin each entry with `- `: `- {path: ..., clients: ...}`"},
      {"nodes: {groups: {a100: gpu1}}", "2:17: `groups` must be a list, not a mapping",
       "begin each entry with `- `: `- {name: ..., nodes: ...}`"},
      {"servers: {s: {exports: [/x]}}", "2:25: `servers.s.exports[0]` must be a mapping, not text",
       "write its keys below it, indented by two spaces"},
      {"mounts:\n  m:\n    from: \"h.x:/\"\n    at: /x\n    options: ro,nolock",
       "6:14: `options` must be a list, not text", "write `options: [ro, nolock]`"},
      {"mounts: {m: {from: \"h.x:/\", at: [/x]}}", "2:33: `at` must be a single value, not a list",
       "write the value without brackets or `- `"},
      {"mounts: {m: {from: \"h.x:/\", at: }}", "2:29: `at` has no value", "it needs a value (mount point)"},
      {"mounts: {m: {from: \"h.x:/\", at: /x, profile: }}", "2:37: `profile` has no value",
       "leave the key out for its default"},
      {"mounts: {m: {from: \"s:/x\", at: /d, shares: [{path: ../etc}]}}",
       "2:52: `path` leads out of the mount: `../etc`",
       "write the path of a directory below the mount point, without `..`"},
      {"mounts: {m: {from: \"s:/x\", at: /d, shares: [{path: /out}]}}", "2:52: `path` is an absolute path: `/out`",
       "write `out`"},
      {"mounts: {m: {from: \"s:/x\", at: /d, shares: [{path: a, acess: open}]}}", "2:55: unknown key `acess`",
       "did you mean `access`?"},
      {"servers: {s: {exports: [{path: /x, clients: [c], access: [open]}]}}",
       "2:58: `access` must be `keep`, `open` or {group, mode}, not a list",
       "write the value without brackets or `- `"},
      {"nodes: {hostfile: \"\"}", "2:19: `hostfile` is empty", "leave the key out for its default"},
      {"caches: {local: []}", "2:10: `local` is empty",
       "it needs at least one element (directory on a node's own disk, or a list of which the first usable one is "
       "taken; "
       "may hold variables of the batch system (`$SLURM_TMPDIR`), which must have the same value on all nodes of a "
       "job)"},
  });
}

TEST_CASE("the version is the number 1", "[read]") {
  for (const std::string value : {"2", "\"1\"", "01", "1.0", "0x1", "one", "true"}) {
    INFO(value);
    const auto config = parse("version: " + value, "f");
    REQUIRE_FALSE(config);
    CHECK(config.error().message == "f:1:10: `version` must be the number 1, not `" + value + "`");
  }
}

TEST_CASE("choices", "[read]") {
  const std::string mount = "mounts: {m: {from: \"h.x:/\", at: /x, ";
  check({
      {mount + "profile: sfae}}", "2:46: `profile` must be `safe`, `recipe` or `immutable`, not `sfae`",
       "did you mean `safe`?"},
      {mount + "boot: yes}}",
       "2:43: `boot` must be `none`, `auto`, `unit`, `automount`, `fstab` or `rc.local`, not `yes`",
       "what mounts it at boot; auto: systemd units that wait for the server, or rc.local where there is no systemd"},
      {"caches: {when: raci}", "2:16: `when` must be `shared` or `racy`, not `raci`", "did you mean `racy`?"},
      {"caches: {rules: [{flag: --x, place: remote}]}", "2:37: `place` must be `local` or `keep`, not `remote`",
       "local: moved to the node's own disk; keep: left where it is"},
      {"servers: {s: {exports: [{path: /x, clients: [c], access: opne}]}}",
       "2:58: `access` must be `keep`, `open` or {group, mode}, not `opne`", "did you mean `open`?"},
      {"servers: {s: {exports: [{path: /x, clients: [c], access: {group: g, sticky: tru}}]}}",
       "2:77: `sticky` must be `false` or `true`, not `tru`", "did you mean `true`?"},
  });
}

TEST_CASE("lists: nothing twice, and no empty list of clients", "[read]") {
  check({
      {"conda: {store: /x, envs: [a, b, a]}", "2:33: `a` stands in `conda.envs` already",
       "line 2 has it; remove one of them"},
      {"servers: {s: {exports: [{path: /x, clients: []}]}}", "2:36: `clients` is empty",
       "it needs at least one element (who may mount it: hosts, CIDR networks, wildcards (quoted: `\"*\"`), "
       "@netgroups; {hosts, options} for hosts with options of their own)"},
  });
}

TEST_CASE("conda.homes: a mapping or a list of them, and no user twice", "[read]") {
  check({
      {"conda: {store: /x, homes: {users: [a, b, a]}}", "2:42: `a` stands in this list already", "remove one of them"},
      {"conda: {store: /x, homes: [{users: [a, b]}, {users: [c, b], conda: mc}]}",
       "2:57: `b` stands in `conda.homes` already", "line 2 has it; remove one of them"},
      {"conda: {store: /x, homes: alice}", "2:27: `conda.homes` must be a mapping, not text",
       "write its keys below it, indented by two spaces"},
      {"conda: {store: /x, homes: [alice]}", "2:28: `conda.homes[0]` must be a mapping, not text",
       "write its keys below it, indented by two spaces"},
      {"conda: {store: /x, homes: [{user: [a]}]}", "2:29: unknown key `user`", "did you mean `users`?"},
      {"conda: {store: /x, homes: {users: [a], conda: ~/mc}}", "2:47: `conda` is relative to each home already: `~/mc`",
       "write `mc`"},
  });
}

TEST_CASE("conda.envs: names, and mappings with settings, none twice", "[read]") {
  check({
      {"conda: {store: /x, envs: [a, {name: a, keep: 2}]}", "2:37: `a` is the `name` of `conda.envs[0]` already",
       "line 2 has it; choose another, or keep one of the two"},
      {"conda: {store: /x, envs: [{keep: 2}]}", "2:27: `conda.envs[0]` has no key `name`",
       "add `name: ...` (name of the environment)"},
      {"conda: {store: /x, envs: [{name: a, keep: 0}]}", "2:43: `keep` is not a number from 1 to 9999",
       "write for example `3`"},
      {"conda: {store: /x, envs: [{name: a, protekt: true}]}", "2:37: unknown key `protekt`",
       "did you mean `protect`?"},
      {"conda: {store: /x, envs: [{name: a, stage: tmp}]}", "2:44: `stage` is not an absolute path: `tmp`",
       "write `/tmp`"},
      {"conda: {store: /x, envs: [{name: ../a}]}", "2:34: `name` is a path, not the name of an environment: `../a`",
       "write `a`"},
  });
}

TEST_CASE("clients: names and mappings, mixed, and no host twice", "[read]") {
  const auto parsed = parse("version: 1\n"
                            "servers: {s: {exports: [{path: /x, clients: [a, {hosts: [b, c], options: [ro]}, d]}]}}\n",
                            "f");
  REQUIRE(parsed);
  const auto& clients = parsed->servers[0].exports[0].clients;
  REQUIRE(clients.size() == 3);
  CHECK(clients[0] == Client{{"a"}, {}, {"f", 2, 46}});
  CHECK(clients[1].hosts == std::vector<std::string>{"b", "c"});
  CHECK(clients[1].options == std::vector<std::string>{"ro"});
  CHECK(clients[1].origin.text() == "f:2:49");
  CHECK(clients[2].hosts == std::vector<std::string>{"d"});

  const std::string front = "servers: {s: {exports: [{path: /x, clients: ";
  check({
      {front + "[a, a]}]}}", "2:49: `a` stands in `servers.s.exports[0].clients` already",
       "line 2 has it; remove one of them"},
      {front + "[a, {hosts: [b, a], options: [ro]}]}]}}", "2:61: `a` stands in `servers.s.exports[0].clients` already",
       "line 2 has it; remove one of them"},
      {front + "[{hosts: [a]}]}]}}", "2:46: `servers.s.exports[0].clients[0]` has no key `options`",
       "add `options: ...` (options of exports(5) for these hosts; they come after those of the export and win over "
       "them)"},
      {front + "[{hosts: [a], options: []}]}]}}", "2:59: `options` is empty",
       "it needs at least one element (options of exports(5) for these hosts; they come after those of the export and "
       "win over them)"},
      {front + "[{hosts: [], options: [ro]}]}]}}", "2:47: `hosts` is empty",
       "it needs at least one element (hosts that have these options)"},
      {front + "[{host: [a], options: [ro]}]}]}}", "2:47: unknown key `host`", "did you mean `hosts`?"},
      {front + "[{hosts: a, options: [ro]}]}]}}", "2:54: `hosts` must be a list, not text", "write `hosts: [a]`"},
      {front + "[[a]]}]}}", "2:46: `clients` must be a single value, not a list",
       "write the value without brackets or `- `"},
      {front + "[\"a(rw)\"]}]}}", "2:46: `clients` must not hold parentheses: `a(rw)`",
       "options belong in `options: [...]`"},
      {front + "[ ,]}]}}", "2:47: `clients` has no value", "remove the empty element"},
  });
}

TEST_CASE("merge keys are refused, not ignored", "[read]") {
  check({{"mounts:\n  a: &a {from: \"h.x:/\", at: /a}\n  b: {<<: *a, at: /b}",
          "4:7: merge keys (`<<`) are not supported", "write the keys out; aliases of values do work"}});
}

TEST_CASE("a document that is no mapping", "[read]") {
  struct Whole {
    std::string yaml, error, hint;
  };
  const std::vector<Whole> rows{
      {"", "1:1: the configuration is empty", "begin it with `version: 1`"},
      {"# nothing\n---\n", "1:1: the configuration is empty", "begin it with `version: 1`"},
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

TEST_CASE("references to servers: a known name, any host, but no typing mistake", "[read]") {
  struct Row {
    std::string host, hint; ///< empty hint: accepted
  };
  const std::vector<Row> rows{
      {"storage1", ""},
      {"filer", ""},
      {"storage2.example.com", ""}, // a dot: a host of its own
      {"10.0.0.1", ""},
      {"storage2", "did you mean `storage1`? If `storage2` is another machine, add it under `servers:`"},
      {"storgae1", "did you mean `storage1`? If `storgae1` is another machine, add it under `servers:`"},
  };
  for (const auto& [host, hint] : rows) {
    INFO(host);
    const auto config =
        parse("version: 1\nservers: {storage1: }\nmounts: {m: {from: \"" + host + ":/x\", at: /x}}\n", "f");
    REQUIRE(config.has_value() == hint.empty());
    if (!config) {
      CHECK(config.error().message == "f:3:20: no server is called `" + host + "`");
      CHECK(config.error().hint == hint);
    }
  }
}

TEST_CASE("one mount per mount point, one export per directory", "[read]") {
  auto config = parse("version: 1\nmounts:\n  a: {from: \"h.x:/a\", at: /d}\n  b: {from: \"h.x:/b\", at: /d}\n", "f");
  REQUIRE_FALSE(config);
  CHECK(config.error().message == "f:4:27: `/d` is the `at` of `mounts.a` already");

  config = parse("version: 1\nservers:\n  s:\n    exports:\n      - {path: /x, clients: [a]}\n"
                 "      - {path: /x, clients: [b]}\n",
                 "f");
  REQUIRE_FALSE(config);
  CHECK(config.error().message == "f:6:16: `/x` is the `path` of `servers.s.exports[0]` already");
  CHECK(config.error().hint == "line 5 has it; choose another, or keep one of the two");

  CHECK(parse("version: 1\nservers:\n  s: {exports: [{path: /x, clients: [a]}]}\n"
              "  t: {exports: [{path: /x, clients: [a]}]}\n",
              "f")); // the same directory of two servers
}

TEST_CASE("all errors of a file are found in one run, in the order of the file", "[read]") {
  const auto [config, errors] = check("mounts: {m: {from: \"storage2:/x\", at: m}}\n"
                                      "servers: {storage1: {adress: x, exports: [{path: /x, clients: a}]}}\n"
                                      "nodes: [x]\ncaches: {min_free: much}\n",
                                      "f");
  std::vector<std::string> messages;
  for (const auto& error : errors) {
    messages.push_back(error.message);
    CHECK_FALSE(error.hint.empty());
  }
  CHECK(messages == std::vector<std::string>{
                        "f:1:1: the key `version` is missing", "f:1:20: no server is called `storage2`",
                        "f:1:39: `at` is not an absolute path: `m`", "f:2:22: unknown key `adress`",
                        "f:2:63: `clients` must be a list, not text", "f:3:8: `nodes` must be a mapping, not a list",
                        "f:4:20: `min_free` is not a size: `much`"});
  CHECK(config.servers.at(0).exports.at(0).path == "/x"); // what is right is read
  const auto first = parse("version: 1\nnodes: [x]\ncaches: []\n", "a b");
  REQUIRE_FALSE(first);
  CHECK_THAT(first.error().context, Catch::EndsWith("\n  1 more: `sharefs config check 'a b'` shows all"));
}

TEST_CASE("a hint is not what would be wrong again", "[read]") {
  const std::string mount = "mounts: {m: {from: \"h.x:/\", at: ";
  check({
      // The key that is near is there already, or was meant by another one.
      {mount + "/x, aat: /y}}", "2:37: unknown key `aat`",
       "`mounts.m` has the keys `from`, `at`, `profile`, `options`, `boot`, `shares`"},
      // In quotes it would be a number all the same, and no name of an account.
      {"conda: {store: /x, homes: {users: [1000]}}", "2:36: `users` is a number: `1000`", "write the name, not the id"},
      {mount + "/..}}", "2:33: `at` is not a normalized path: `/..`",
       "leave out `.`, `..` and slashes that say nothing"},
      {mount + "/x/}}", "2:33: `at` is not a normalized path: `/x/`", "write `/x`"},
      {mount + "\"a: b\"}}", "2:33: `at` is not an absolute path: `a: b`", "write `\"/a: b\"`"},
      {mount + "/x, options: \"ro,ro\"}}", "2:46: `options` must be a list, not text", "write `options: [...]`"},
      {mount + "/x, options: \"ro, (x)\"}}", "2:46: `options` must be a list, not text", "write `options: [...]`"},
      {"conda: {store: /x, envs: [/data/envs/base]}",
       "2:27: `envs` is a path, not the name of an environment: "
       "`/data/envs/base`",
       "write its name only"},
      {"conda: {store: /x, homes: {conda: ~/conda/}}", "2:35: `conda` is relative to each home already: `~/conda/`",
       "write `conda`"},
      {"mounts: {m: {from: \"h.x:/a/\", at: /x}}", "2:20: `from` is not a normalized path: `h.x:/a/`",
       "write `\"h.x:/a\"`"},
      {"mounts: m:x", "2:9: `mounts` must be a mapping, not text", "write its keys below it, indented by two spaces"},
      {"caches: {rules: [{flag: \"cache dir\", place: keep}]}", "2:25: `flag` is not an option: `cache dir`",
       "write for example `--cache_dir`"},
  });
}

TEST_CASE("what a file may cost is bounded: time is linear, values and errors have a limit", "[read]") {
  const auto repeat = [](std::size_t times, const auto& line) {
    std::string out = "version: 1\n";
    for (std::size_t i = 0; i < times; ++i)
      out += line(std::to_string(i));
    return out;
  };
  // Each of these was quadratic, or printed an error for every line.
  const auto same = check(repeat(5'000, [](const std::string&) { return "mounts: {a: 1, a: 1}\n"; }), "f");
  CHECK(same.errors.size() == 101);
  CHECK(same.errors.back().message == "f: 4901 further errors");
  const auto one_line =
      check("version: 1\nservers: {" + repeat(5'000, [](const std::string&) { return "a: , "; }).substr(11) + "}", "f");
  CHECK(one_line.errors.size() == 101);
  std::string servers = repeat(2'000, [](const std::string& i) { return i == "0" ? "servers:\n" : "  s" + i + ":\n"; });
  servers += repeat(3'000, [](const std::string& i) {
               return i == "0" ? "mounts:\n" : "  m" + i + ": {from: \"quite-another" + i + ":/\", at: /" + i + "}\n";
             }).substr(11);
  const auto many = check(servers, "f").errors;
  INFO((many.empty() ? "" : many.front().message));
  CHECK(many.empty());
  const auto huge = check("version: 1\nnodes: {hostfile: /" + std::string(500'000, 'x') + "}\n", "f");
  REQUIRE(huge.errors.size() == 1);
  CHECK_THAT(huge.errors[0].message, Catch::StartsWith("f:2:19: `hostfile` has 500001 bytes: `/xxx"));
  CHECK(huge.errors[0].message.size() < 200);
  CHECK(huge.errors[0].context.size() < 400);
}

TEST_CASE("the section of staging is there once it is written", "[read]") {
  const auto config = parse("version: 1\nstage: {store: /m/images, at: /local, paths: [/m/c4]}\n", "f");
  REQUIRE(config);
  REQUIRE(config->stage);
  CHECK(config->stage->store == "/m/images");
  CHECK(config->stage->at == "/local");
  CHECK(config->stage->paths == std::vector<std::string>{"/m/c4"});
  CHECK_FALSE(parse("version: 1\n", "f")->stage);
}
