#include "config/load.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::config;

TEST_CASE("references to servers: a known name, any host, but no typing mistake", "[fill]") {
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

TEST_CASE("one mount per mount point, one export per directory", "[fill]") {
  auto config = parse("version: 1\nmounts:\n  a: {from: \"h.x:/a\", at: /d}\n  b: {from: \"h.x:/b\", at: /d}\n", "f");
  REQUIRE_FALSE(config);
  CHECK(config.error().message == "f:4:27: `/d` is the mount point of `a` already");

  config = parse("version: 1\nservers:\n  s:\n    exports:\n      - {path: /x, clients: [a]}\n"
                 "      - {path: /x, clients: [b]}\n",
                 "f");
  REQUIRE_FALSE(config);
  CHECK(config.error().message == "f:6:16: `/x` is exported twice by `s`");
  CHECK(config.error().hint == "line 5 exports it already; list all clients there");

  CHECK(parse("version: 1\nservers:\n  s: {exports: [{path: /x, clients: [a]}]}\n"
              "  t: {exports: [{path: /x, clients: [a]}]}\n",
              "f")); // the same directory of two servers
}
