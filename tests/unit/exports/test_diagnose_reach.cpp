// What clients get by other entries than their own. The numbers are those of the project's list of known differences;
// what clients really may do is tried in tests/lab/test_export_reach.py.
#include "support/catch.hpp"
#include "unit/exports/told.hpp"

#include <cerrno>

using namespace sharefs;
using namespace sharefs::exports;
using Lines = std::vector<std::string>;

namespace {

HostFacts names() {
  HostFacts facts;
  facts.names["both"] = {{"10.77.0.3", "10.77.0.4"}, "both"};
  facts.names["chain"] = {{"10.77.0.4", "10.77.0.5"}, "chain"};
  facts.names["alias"] = {{"10.77.0.3"}, "both"}; // "10.77.0.3 both alias" in /etc/hosts
  facts.names["round"] = {{"10.77.0.8", "10.77.0.9"}, "one"};
  facts.names["one"] = {{"10.77.0.8"}, "one"};
  facts.names["dual"] = {{"10.77.0.6", "fd00::6"}, "dual"};
  return facts;
}

/// Directories of one file system at /, and one of its own at /mnt.
HostFacts directories() {
  HostFacts facts = names();
  for (const std::string path : {"/", "/a", "/a/b", "/a/b/c", "/ab", "/mnt", "/mnt/b"}) {
    auto& entry = facts.directories[path];
    entry.path = entry.resolved = path;
    entry.kind = sys::EntryKind::directory;
    entry.mount = path.starts_with("/mnt") ? "/mnt" : "/";
  }
  return facts;
}

Lines only(std::string_view code, const Diagnoses& diagnoses) {
  Diagnoses some;
  for (const auto& one : diagnoses)
    if (one.code == code)
      some.push_back(one);
  return told(some);
}

} // namespace

TEST_CASE("1 a host that exportfs has taken for another one") {
  struct Case {
    std::string text, etab;
    Lines told;
  };
  const auto row = GENERATE(values<Case>({
      {"/a both(rw)\n/b 10.77.0.4(rw)", "/a\tboth(rw)\n/b\tboth(rw)\n", {"SF144 error 2:4"}}, // .3 gets /b
      {"/b 10.77.0.4(rw)\n/a both(rw)", "/b\t10.77.0.4(rw)\n/a\t10.77.0.4(rw)\n", {"SF144 warning 2:4"}},
      {"/a dual(rw)\n/b 10.77.0.6(rw)", "/a\tdual(rw)\n/b\tdual(rw)\n", {"SF144 warning 2:4"}}, // of one machine mostly
      {"/a both(rw)\n/b 10.77.0.4/32(rw)", "/a\tboth(rw)\n/b\t10.77.0.4/32(rw)\n", {}},         // the cure
      {"/a both(rw)\n/b both(rw)", "/a\tboth(rw)\n/b\tboth(rw)\n", {}},
      {"/a unknown(rw)\n/b both(rw)", "/a\tunknown(rw)\n/b\tboth(rw)\n", {}},
      {"/a alias(rw)", "/a\tboth(rw)\n", {"SF144 error 1:4"}}, // etab has its canonical name
  }));
  CAPTURE(row.text);
  const auto facts = names();
  const std::vector<ExportsFile> files{parse(row.text, "f")};
  CHECK(only("SF144", diagnose(files, read_answer(row.etab, files, facts), facts)) == row.told);
  const std::vector<ExportsFile> two{parse("/a both(rw)\n/b 10.77.0.4(rw)", "f")};
  const auto found = diagnose(two, read_answer("/a\tboth(rw)\n/b\tboth(rw)\n", two, facts), facts);
  CHECK(found.at(0).message ==
        "`/b` is also exported to 10.77.0.3: exportfs takes `10.77.0.4` for `both`, with which it shares an address");
  CHECK(found.at(0).hint == "write `10.77.0.4/32`, which exportfs takes for no other host");
}

TEST_CASE("2 an export inside another one of the same file system") {
  struct Case {
    std::string text;
    Lines told;
  };
  const auto row = GENERATE(values<Case>({
      {"/a h(rw)\n/a/b h(ro)", {"SF143 error 2:6"}},
      {"/a h(ro)\n/a/b h(rw)", {"SF143 warning 2:6"}},
      {"/a h(rw)\n/a/b h(rw,fsid=1,no_subtree_check,crossmnt)", {}}, // what concerns the directory only
      {"/a h(rw,no_root_squash)\n/a/b h(rw)", {"SF143 error 2:6"}},
      {"/a h(rw)\n/a/b h(rw,no_root_squash)", {"SF143 warning 2:6"}},
      {"/a h(rw,insecure)\n/a/b h(rw)", {"SF143 error 2:6"}},
      {"/a h(rw)\n/a/b h(rw,all_squash)", {"SF143 error 2:6"}},
      {"/a h(rw,sec=sys)\n/a/b h(rw,sec=krb5)", {"SF143 error 2:6"}},
      {"/a h(ro,anonuid=0)\n/a/b h(ro)", {"SF143 error 2:6"}},
      {"/ h(rw)\n/a h(rw)\n/a/b h(ro)", {"SF143 error 3:6"}},
      {"/ h(ro)\n/a h(rw)\n/a/b h(ro)", {"SF143 warning 2:4"}}, // from the outermost, and no further
      {"/a h(rw)\n/ab h(ro)", {}},
      {"/a i(rw)\n/a/b h(ro)", {}},
      {"/ h(rw)\n/mnt h(ro)", {}}, // something is mounted there
      {"/mnt h(rw)\n/mnt/b h(ro)", {"SF143 error 2:8"}},
      {"/a 10.0.1.5(rw)\n/a/b 10.0.0.0/24(ro)", {}},
      {"/a 10.0.0.0/24(rw)\n/a/b 10.0.0.5(ro)", {"SF143 error 2:6"}},
      {"/a 10.0.0.9/24(rw) 10.0.0.0/28(ro)\n/a/b 10.0.0.5(ro)", {}}, // the narrowest one
      {"/a *(rw)\n/a/b 10.0.0.5(ro)", {"SF143 error 2:6"}},
      {"/a *(rw) 10.0.0.5(ro)\n/a/b 10.0.0.5(ro)", {}}, // the host goes before everyone
      {"/a gss/krb5(rw)\n/a/b h(ro)", {}},
      {"/a h(rw,fsid=0)\n/a/b h(ro)", {"SF143 error 2:6"}},
  }));
  CAPTURE(row.text);
  CHECK(only("SF143", diagnoses_of(row.text, directories())) == row.told);
  CHECK(only("SF143", diagnoses_of(row.text)).empty()); // where nothing is known of the directories
}

TEST_CASE("3 an export path that is a link") {
  auto facts = directories();
  auto& link = facts.directories["/link"];
  link = facts.directories["/a"];
  CHECK(told(diagnoses_of("/link h(rw,subtree_check)", facts)) == Lines{"SF142 warning 1:1"});
  facts.directories["/a/"] = facts.directories["/a"];
  CHECK(only("SF142", diagnoses_of("/a/ h(rw,subtree_check)", facts)).empty());
}

TEST_CASE("5 lines of etab that mountd cannot read") {
  const auto with = [](const std::string& line) {
    const std::vector<ExportsFile> files{parse("/a h(rw)\n/b h(rw)\n", "f")};
    return only("SF141", diagnose(files, read_answer(line + "\n/b\th(rw)\n", files, {}), {}));
  };
  CHECK(with("/a\th(rw,mountpoint=/a b)") == Lines{"SF141 error 1:4"});
  CHECK(with("/a\th(rw,mountpoint=/a\"b)") == Lines{"SF141 error 1:4"});
  CHECK(with("/a\th(rw,mountpoint=/a)b,sec=sys)") == Lines{"SF141 error 1:4"});
  CHECK(with("/a\th(rw,mountpoint=/" + std::string(600, 'x') + ")") == Lines{"SF141 error 1:4"});
  CHECK(with("/a\th(rw,refer=/a\\040b@h,shiny_new)").empty());
  CHECK(with("/a\t-h(rw)") == Lines{"SF141 error 1:1"}); // a host's first name: mountd takes it for defaults
  CHECK(with("/a\th(rw,mountpoint=/a b,shiny_new)") == Lines{"SF141 error 1:4"});
}

TEST_CASE("5 an address with an interface that is not there, a circle of links, a missing directory") {
  auto facts = directories();
  facts.names["fe80::1%eth9"] = {};
  facts.names["fe80::1%lo"] = {{"fe80::1%lo"}, "fe80::1%lo"};
  CHECK(told(diagnoses_of("/a fe80::1%eth9(rw,subtree_check) fe80::1%lo(rw) fe80::1(rw)", facts)) ==
        Lines{"SF122 error 1:4"});
  auto& loop = facts.directories["/loop//x"];
  loop.resolved = "/loop/x";
  loop.error_number = ELOOP;
  CHECK(told(diagnoses_of("/loop//x h(rw)", facts)) == Lines{"SF123 error 1:1"});
  auto& gone = facts.directories["/gone/"];
  gone.resolved = "/gone";
  gone.kind = sys::EntryKind::missing;
  CHECK(predict_from_text({parse("/gone/ h(rw)\n/loop//x h(rw)", "f")}, facts).entries.at(0).directory == "/gone/");
  CHECK(predict_from_text({parse("/gone/ h(rw)\n/loop//x h(rw)", "f")}, facts).entries.at(1).directory == "/loop//x");
  CHECK(real_path("/gone/", facts) == "/gone"); // where it will be
}
