#include "mounts/options.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using sharefs::test::has_code;

TEST_CASE("options become settings of a key") {
  struct Row {
    const char* text;
    const char* key;
    const char* value;
  };
  const auto row = GENERATE(values<Row>({{"soft", "recovery", "soft"},
                                         {"hard", "recovery", "hard"},
                                         {"ro", "access", "ro"},
                                         {"nolock", "lock", "no"},
                                         {"nfsvers=4.1", "vers", "4.1"},
                                         {"vers=3", "vers", "3"},
                                         {"v4.2", "vers", "4.2"},
                                         {"tcp", "proto", "tcp"},
                                         {"proto=rdma", "proto", "rdma"},
                                         {"lookupcache=pos", "lookupcache", "positive"},
                                         {"actimeo=600", "actimeo", "600"},
                                         {"newoption", "newoption", "yes"},
                                         {"newvalue=7", "newvalue", "7"}}));
  const auto settings = parse_options({row.text});
  REQUIRE(settings.size() == 1);
  CHECK(settings[0] == Setting{row.key, row.value, row.text});
}

TEST_CASE("lists are split at commas outside of quotes") {
  const auto settings = parse_options({"rw, hard,,", "context=\"system_u:object_r:nfs_t:s0:c1,c2\",ro"});
  REQUIRE(settings.size() == 4);
  CHECK(settings[2].text == "context=\"system_u:object_r:nfs_t:s0:c1,c2\"");
  CHECK(format_options(settings) == "rw,hard,context=\"system_u:object_r:nfs_t:s0:c1,c2\",ro");
}

TEST_CASE("own options override by key") {
  struct Row {
    const char *base, *extra, *result;
  };
  const auto row = GENERATE(values<Row>({{"rw,hard,vers=4.2", "soft", "rw,soft,vers=4.2"},
                                         {"rw,hard,vers=4.2,proto=tcp", "nfsvers=3", "rw,hard,nfsvers=3,proto=tcp"},
                                         {"rw", "timeo=100,retrans=3", "rw,timeo=100,retrans=3"},
                                         {"ro,actimeo=600", "acregmin=5", "ro,actimeo=600,acregmin=5"},
                                         {"ro,acregmin=5,acdirmax=9", "actimeo=600", "ro,actimeo=600"},
                                         {"rw", "ro,rw", "rw"}}));
  CHECK(format_options(override_settings(parse_options({row.base}), parse_options({row.extra}))) == row.result);
}

TEST_CASE("versions") {
  struct Row {
    const char *options, *version;
    int major;
  };
  const auto row = GENERATE(values<Row>({{"rw,hard", "", 0},
                                         {"vers=3", "3", 3},
                                         {"vers=4", "4", 4},
                                         {"vers=4,minorversion=1", "4.1", 4},
                                         {"minorversion=2", "4.2", 4},
                                         {"vers=4.2", "4.2", 4}}));
  const auto version = version_of(parse_options({row.options}));
  CHECK(version == row.version);
  CHECK(major_version(version) == row.major);
}

TEST_CASE("actimeo stands for four times") {
  const auto settings = expand(parse_options({"ro,actimeo=600,acdirmax=700"}));
  CHECK(find_setting(settings, "actimeo") == nullptr);
  CHECK(find_setting(settings, "acregmin")->value == "600");
  CHECK(find_setting(settings, "acdirmax")->value == "700"); // the later one wins
}

TEST_CASE("what only fstab understands is not given to mount.nfs") {
  CHECK(format_options(for_mount(parse_options({"rw,_netdev,nofail,noauto,x-systemd.automount,hard,comment=x"}))) ==
        "rw,hard");
}

TEST_CASE("options are checked") {
  struct Row {
    const char *options, *code;
    Severity severity;
  };
  const auto row = GENERATE(values<Row>({{"hrad", "SF205", Severity::error},
                                         {"nolok", "SF205", Severity::error},
                                         {"somethingnewerthanus", "SF205", Severity::warning},
                                         {"remount", "SF206", Severity::error},
                                         {"bind", "SF206", Severity::error},
                                         {"timeo", "SF206", Severity::error},
                                         {"hard,soft", "SF206", Severity::error},
                                         {"vers=3,nfsvers=4.2", "SF206", Severity::error},
                                         {"vers=4.2,nolock", "SF207", Severity::warning},
                                         {"vers=3,clientaddr=10.0.0.1", "SF207", Severity::warning},
                                         {"intr", "SF207", Severity::warning}}));
  const auto found = check_options(parse_options({row.options}), "share");
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == row.code);
  CHECK(found[0].severity == row.severity);
  CHECK(found[0].subject == "share");
  CHECK_FALSE(found[0].hint.empty());
}

TEST_CASE("sound options are not complained about") {
  const auto* list = GENERATE("rw,hard,vers=4.2,proto=tcp,nconnect=4", "rw,bg,soft,nolock", "vers=3,nolock",
                              "hard,hard", "ro,actimeo=600,x-systemd.automount,_netdev");
  CHECK(check_options(parse_options({list}), "share").empty());
}

TEST_CASE("a typing mistake gets the right word") {
  CHECK(check_options(parse_options({"ncconect=4"}), "share")[0].hint.find("nconnect") != std::string::npos);
}

TEST_CASE("consequences are told") {
  CHECK(consequences(parse_options({"rw,hard,vers=4.2"})).empty());
  const auto recipe = consequences(parse_options({"rw,bg,soft,nolock"}));
  REQUIRE(recipe.size() == 3);
  CHECK(recipe[0].find("returns 0 although nothing is mounted") != std::string::npos);
  CHECK(recipe[1].find("corrupt") != std::string::npos);
  CHECK(recipe[2].find("Hugging Face") != std::string::npos);
  CHECK(consequences(parse_options({"nolock,vers=4.2"})).empty()); // the kernel clears it
  CHECK(consequences(parse_options({"proto=udp,vers=3"})).size() == 1);
  CHECK(consequences(parse_options({"local_lock=none"})).empty());
  CHECK(consequences(parse_options({"local_lock=flock"})).size() == 1);
}

TEST_CASE("the table is sound") {
  for (const auto& row : option_table()) {
    CHECK(find_option(row.name) == &row); // no name twice
    CHECK_FALSE(row.name.empty());
    if (!row.value.empty())
      CHECK_FALSE(row.key.empty());
  }
}
