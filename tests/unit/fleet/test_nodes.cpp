#include "base/text.hpp"
#include "fleet/sources.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace sharefs;
using namespace sharefs::fleet;

namespace {

using Names = std::vector<std::string>;

Result<Names> members(const std::string& name) {
  if (name == "odd")
    return Names{"n1", "n3", "n5"};
  return fail(ErrorCode::usage, "no group is called `" + name + "`");
}

Names names_of(const std::vector<Node>& nodes) {
  Names names;
  for (const auto& node : nodes)
    names.push_back(node.name);
  return names;
}

} // namespace

TEST_CASE("names by ranges, as nodeset(1) has them", "[fleet]") {
  struct Row {
    std::string pattern;
    Names names;
  };
  const std::vector<Row> rows{
      {"gpu7", {"gpu7"}},
      {"gpu[1-3]", {"gpu1", "gpu2", "gpu3"}},
      {"gpu[08-11]", {"gpu08", "gpu09", "gpu10", "gpu11"}},
      {"gpu[098-101]", {"gpu098", "gpu099", "gpu100", "gpu101"}},
      {"gpu[0-8/4]", {"gpu0", "gpu4", "gpu8"}},
      {"gpu[1,5,3-4]", {"gpu1", "gpu5", "gpu3", "gpu4"}},
      {"rack[1-2]node[1-2]", {"rack1node1", "rack1node2", "rack2node1", "rack2node2"}},
      {"node[1-2].cluster.example", {"node1.cluster.example", "node2.cluster.example"}},
      {"b,a,b,c", {"b", "a", "c"}},
      {"a b\tc", {"a", "b", "c"}},
      {"n[1-5]!n3", {"n1", "n2", "n4", "n5"}},
      {"n[1-5]&n[4-9]", {"n4", "n5"}},
      {"n[1-3]^n[3-4]", {"n1", "n2", "n4"}},
      {"n[1-4]!@odd", {"n2", "n4"}},
      {"@odd,x", {"n1", "n3", "n5", "x"}},
      {"n[1-4]!n[1-3],n2", {"n4", "n2"}},
      {"gpu-7-rack-3", {"gpu-7-rack-3"}},
  };
  for (const auto& row : rows) {
    INFO(row.pattern);
    const auto names = expand(row.pattern, members);
    REQUIRE(names);
    CHECK(*names == row.names);
  }
}

TEST_CASE("what names no nodes is refused with its column", "[fleet]") {
  for (const std::string pattern :
       {"",         " ",          "a,",       ",a",         "gpu[1-",           "gpu[]",      "gpu[3-1]",
        "gpu[a-b]", "gpu[1-2/0]", "gpu[1/2]", "gpu[8-010]", "-oProxyCommand=x", "a;b",        "a$(b)",
        "a'b",      "gpu]1[",     "@",        "@none",      "@odd[1-2]",        "n[1-99999]", "a[1-100]b[1-1000]",
        "n[1-3",    "a!!b",       ".a"}) {
    INFO(pattern);
    const auto names = expand(pattern, members);
    REQUIRE_FALSE(names);
    CHECK(names.error().code == ErrorCode::usage);
  }
  CHECK(expand("ok,gpu[5-2]").error().message.find("(column 8)") != std::string::npos);
}

// What ClusterShell's own tests of node sets try (tests/NodeSetTest.py of 1.10), in names and numbers of our own.
TEST_CASE("node sets that ClusterShell takes are taken", "[fleet]") {
  struct Row {
    std::string pattern, names; ///< separated by spaces
  };
  const std::vector<Row> rows{
      {"dgx-box", "dgx-box"},
      {"dgx0", "dgx0"},
      {"7dgx", "7dgx"},
      {"[7]dgx", "7dgx"},
      {"[3,5]0dgx", "30dgx 50dgx"},
      {" dgx4 , dgx6 ,  dgx[2,8-9] ", "dgx4 dgx6 dgx2 dgx8 dgx9"},
      {"dgx[ 2 , 8  - 9 ]", "dgx2 dgx8 dgx9"},
      {"r-0-3", "r-0-3"},
      {"r-0-[3-5]", "r-0-3 r-0-4 r-0-5"},
      {"dgx007", "dgx007"},
      {"dgx[0-2]", "dgx0 dgx1 dgx2"},
      {"dgx[44]", "dgx44"},
      {"dgx[0007-0009]", "dgx0007 dgx0008 dgx0009"},
      {"dgx[0007,0009,1555-1556]", "dgx0007 dgx0009 dgx1555 dgx1556"},
      {"dgx[8-9]-bmc", "dgx8-bmc dgx9-bmc"},
      {"dgx[007-008]-bmc,dgx9", "dgx007-bmc dgx008-bmc dgx9"},
      {"oss0[0]", "oss00"},
      {"oss01[0-1]", "oss010 oss011"},
      {"oss-100[040-041]", "oss-100040 oss-100041"},
      {"oss-10[01,05,09-10]", "oss-1001 oss-1005 oss-1009 oss-1010"},
      {"oss-1[0-48/24]", "oss-10 oss-124 oss-148"},
      {"oss-000[0-8/4]", "oss-0000 oss-0004 oss-0008"},
      {"n[1-2]56", "n156 n256"},
      {"n0[1]0", "n010"},
      {"x0[1-2]y00z[3,5]-bmc", "x01y00z3-bmc x01y00z5-bmc x02y00z3-bmc x02y00z5-bmc"},
      {"red,blue,red", "red blue"},
      {" n[1-5] & n[0,2,4] ! n[2-3] ^ n[3-5], n1 ", "n3 n5 n1"},
      {"n[10-12,20]&n[11-30]", "n11 n12 n20"},
      {"n[10-12]^n[10-12],m", "m"},
      {"n7!n7,n8", "n8"},
  };
  for (const auto& row : rows) {
    INFO(row.pattern);
    const auto names = expand(row.pattern, members);
    REQUIRE(names);
    CHECK(join(*names, " ") == row.names);
  }
}

TEST_CASE("node sets that ClusterShell refuses are refused", "[fleet]") {
  for (const std::string_view range : {"[]", "[-]", "[B]", "[2-5/b]", "[6/3]", "[6-/3]", "[-6]", "[-/3]", "[6-b/2]",
                                       "[6-5/2]", "[6-7/-2]", "[6-4/-2]", "[007-004]", "[5-61/2,77b]", "[5-61/2,,77]"})
    for (const std::string_view behind : {"", "p0"})
      for (const std::string_view before : {"dgx", "r4dgx"}) {
        const auto pattern = std::string(before) + std::string(range) + std::string(behind);
        INFO(pattern);
        CHECK_FALSE(expand(pattern));
      }
  for (const std::string pattern :
       {"dgx[5-61/2,77", "a1,a2,,a3", "a1,", "a1[", "a1]",         "a1[2-3]]", "x[1-3]p4-9]", "z]y[1-3]",
        "z[[y[1-3]",     "a!",        "a&",  "a^",  "b[1-3]c[1]!", "!a",       "&a",          "^a",
        "!b[1-3]c[1]",   "!",         ",",   "&",   "^",           ",,,",      "a,,b",        "a!,b"}) {
    INFO(pattern);
    CHECK_FALSE(expand(pattern));
  }
}

TEST_CASE("one mistake in a pattern is one error, with its place and a hint", "[fleet]") {
  struct Row {
    std::string pattern, said;
  };
  const std::vector<Row> rows{
      {"gpu[1-4", "`gpu[1-4` has a `[` without its `]` (column 4)"},
      {"gpu[1-4]]", "`gpu[1-4]]` has `]` in a name (column 9)"},
      {"gpu[4-1]", "`gpu[4-1]` has the range `4-1`, which goes backwards (column 5)"},
      {"gpu[1-4],", "`gpu[1-4],` ends where a name should be (column 10)"},
      {"gpu1,,gpu2", "`gpu1,,gpu2` has `,` where a name should be (column 6)"},
      {"gpu[1-4]!", "`gpu[1-4]!` ends where a name should be (column 10)"},
      {"gpu[01-4]", "`gpu[01-4]` has the range `01-4`, whose ends have different widths (column 5)"},
      {"gpu[1-4]x*", "`gpu[1-4]x*` has `*` or `?` where there is no list of nodes to look in (column 1)"},
      {"gpu1:22", "`gpu1:22` has `:` in a name (column 5)"},
      {"gpu[1..4]", "`gpu[1..4]` has the range `1..4` (column 5)"},
      {"gpu{1-4}", "`gpu{1-4}` has `{` in a name (column 4)"},
      {"gpu1;gpu2", "`gpu1;gpu2` has `;` in a name (column 5)"},
      {"gpu[01-010]", "`gpu[01-010]` has the range `01-010`, whose ends have different widths (column 5)"},
  };
  for (const auto& row : rows) {
    INFO(row.pattern);
    const auto names = expand(row.pattern);
    CHECK((names ? "" : names.error().message) == row.said);
    if (!names)
      CHECK((names.error().hint.find("gpu[01-64]") != std::string::npos) == (row.pattern != "gpu1:22"));
  }
}

TEST_CASE("folding says the names in ranges, and expanding gives them back", "[fleet]") {
  CHECK(fold({}).empty());
  CHECK(fold({"a"}) == "a");
  CHECK(fold({"gpu01", "gpu02", "gpu03", "gpu07"}) == "gpu[01-03,07]");
  CHECK(fold({"gpu3", "gpu1", "gpu2"}) == "gpu[1-3]");
  CHECK(fold({"gpu08", "gpu09", "gpu10"}) == "gpu[08-10]");
  CHECK(fold({"gpu9", "gpu10"}) == "gpu[9-10]");
  CHECK(fold({"r1n1", "r1n2", "r2n1"}) == "r1n[1-2],r2n1");
  CHECK(fold({"n1-ib", "n2-ib", "login"}) == "n[1-2]-ib,login");
  Names many;
  for (int i = 0; i < 5000; ++i)
    many.push_back("gpu-" + std::to_string(i) + "-rack-" + std::to_string(i % 40) + "-x" + std::to_string(i % 9));
  const auto again = expand(fold(many));
  REQUIRE(again);
  CHECK(std::set(again->begin(), again->end()) == std::set(many.begin(), many.end()));
}

TEST_CASE("hostfiles of DeepSpeed, Open MPI and MPICH", "[fleet]") {
  const auto nodes = parse_hostfile(
      "# head\n\n  gpu1 slots=8\ngpu2 slots=4 max_slots=8\ngpu3:2\n gpu4\t\nroot@gpu5 slots=1 # rack 2\n", "hostfile");
  REQUIRE(nodes);
  CHECK(names_of(*nodes) == Names{"gpu1", "gpu2", "gpu3", "gpu4", "gpu5"});
  CHECK((*nodes)[0].slots == 8U);
  CHECK((*nodes)[1].slots == 4U);
  CHECK((*nodes)[2].slots == 2U);
  CHECK_FALSE((*nodes)[3].slots);
  CHECK((*nodes)[4].user == "root");
  CHECK((*nodes)[2].origin.text() == "hostfile:5:1");
}

// As DeepSpeed's own tests of its launcher try them (tests/unit/launcher/test_run.py), with names of our own.
TEST_CASE("a hostfile that DeepSpeed reads is read", "[fleet]") {
  const auto nodes = parse_hostfile("\n    dgx-7 slots=4\n    dgx-9 slots=4\n\n    localhost slots=1\n\t10.7.0.12   "
                                    "slots=3\n\n    #dgx-7 slots=5\n    # out of order\n\n    ",
                                    "hostfile");
  REQUIRE(nodes);
  CHECK(names_of(*nodes) == Names{"dgx-7", "dgx-9", "localhost", "10.7.0.12"});
  std::vector<unsigned> slots;
  for (const auto& node : *nodes)
    slots.push_back(node.slots.value_or(0));
  CHECK(slots == std::vector<unsigned>{4, 4, 1, 3});
}

TEST_CASE("what DeepSpeed refuses in a hostfile is refused here", "[fleet]") {
  struct Row {
    std::string text, said;
  };
  const std::vector<Row> rows{
      {"gpu1 slots=8\ngpu1 slots=8\n", "hostfile:2:1: gpu1 stands on line 1 already"},
      {"gpu1 slots=8\ngpu2 slots=eight\n", "hostfile:2:1: not a node"},
      {"gpu1 slots=\n", "hostfile:1:1: not a node"},
      {"gpu1 8\n", "hostfile:1:1: not a node"},
      {"  dgx-7 slots=4\n  dgx-9 slots=1\n  dgx-7 slots=1\n", "hostfile:3:1: dgx-7 stands on line 1 already"},
      {"  not a name slots=1\n", "hostfile:1:1: not a node"},
      {"dgx-7 slots=4\nnot a name slots=1\ndgx-9 slots=4\n", "hostfile:2:1: not a node"},
      {"dgx-7 slots:4\n", "hostfile:1:1: not a node"},
      {"dgx-7 slots=4x\n", "hostfile:1:1: not a node"},
      {"dgx-7 slots=-4\n", "hostfile:1:1: not a node"},
      {"   \n", "hostfile: no node stands in it"},
      {"gpu1 slots = 8\n", "hostfile:1:1: not a node"},
      {"gpu[1-2] slots=8\n", "hostfile:1:1: not a node"},
      {"-oProxyCommand=x slots=8\n", "hostfile:1:1: not a node"},
      {"", "hostfile: no node stands in it"},
      {"# only\n\n", "hostfile: no node stands in it"},
  };
  for (const auto& row : rows) {
    INFO(row.text);
    const auto nodes = parse_hostfile(row.text, "hostfile");
    REQUIRE_FALSE(nodes);
    CHECK(nodes.error().code == ErrorCode::config);
    CHECK(nodes.error().message.find(row.said) == 0);
  }
}

TEST_CASE("lists of several places become one", "[fleet]") {
  const std::vector<Node> servers{{"storage1", "10.0.0.1", "", {}, {"servers"}, {"s.yaml", 3, 5}}};
  const auto nodes = merge({{"gpu1"}, {"storage1"}}, servers);
  REQUIRE(nodes);
  CHECK(names_of(*nodes) == Names{"gpu1", "storage1"});
  CHECK((*nodes)[0].in("clients"));
  CHECK((*nodes)[1].in("servers"));
  CHECK((*nodes)[1].address == "10.0.0.1");
  const auto twice = merge({{"a", "", "", {}, {}, {"s.yaml", 7, 9}}, {"a", "", "", {}, {}, {"hosts", 2, 1}}}, servers);
  REQUIRE_FALSE(twice);
  CHECK(twice.error().message.find("hosts:2:1") != std::string::npos);
  CHECK(twice.error().hint.find("s.yaml:7:9") != std::string::npos);
}

TEST_CASE("a machine that stands in the list by another name is one node, or an error", "[fleet]") {
  const std::vector<Node> servers{{"storage", "10.77.0.1", "", {}, {"servers"}, {"s.yaml", 3, 5}}};
  for (const Node& listed : std::vector<Node>{
           {"storage.cluster"}, {"STORAGE"}, {"10.77.0.1"}, {"server", "10.77.0.1"}, {"storage", "192.168.1.1"}}) {
    CAPTURE(listed.name);
    const auto nodes = merge({{"gpu1"}, listed}, servers);
    REQUIRE(nodes);
    CHECK(names_of(*nodes) == Names{"gpu1", listed.name});
    CHECK(nodes->back().in("servers"));
  }
  CHECK(merge({{"storage.other", "10.88.0.1"}}, servers)->size() == 2);
  const auto refused = [&](std::vector<Node> listed) {
    const auto nodes = merge(std::move(listed), servers);
    return nodes ? "" : nodes.error().message + "; " + nodes.error().hint;
  };
  CHECK(refused(
            {{"gpu1", "10.0.0.5", "", {}, {}, {"s.yaml", 7, 9}}, {"gpu2", "10.0.0.5", "", {}, {}, {"s.yaml", 8, 9}}}) ==
        "s.yaml:8:9: the node gpu2 has the address of gpu1; that stands at s.yaml:7:9; give each its own, or keep one "
        "of them");
  CHECK(refused({{"gpu1"}, {"first", "gpu1"}}).find("the node first has the address of gpu1") != std::string::npos);
  CHECK(refused({{"gpu1"}, {"GPU1"}}).find("the node GPU1 comes twice") != std::string::npos);
  CHECK(refused({{"storage"}, {"storage.cluster"}}).find("is the server storage, as storage is") != std::string::npos);
}

TEST_CASE("a group may name the groups before it, with and without `@`", "[fleet]") {
  test::ScriptedSystem system;
  const auto read = [&](const std::vector<std::pair<std::string, std::string>>& groups) {
    Sources sources;
    sources.list = {{"gpu[1-4]"}};
    for (const auto& [name, pattern] : groups)
      sources.groups.push_back({name, {pattern}, {}});
    return read_nodes(system, sources);
  };
  for (const std::string pattern : {"clients!@a100", "clients!a100", "@clients ! a100"}) {
    const auto nodes = read({{"a100", "gpu[1-2]"}, {"rest", pattern}});
    REQUIRE(nodes);
    CHECK(names_of(select(*nodes, "rest").value()) == Names{"gpu3", "gpu4"});
  }
  for (const std::string pattern : {"clients!@a100", "clients,a100"}) {
    const auto nodes = read({{"rest", pattern}, {"a100", "gpu[1-2]"}});
    REQUIRE_FALSE(nodes);
    CHECK(nodes.error().hint == "write the group a100 in front of the groups that name it");
  }
}

TEST_CASE("--on chooses by names, ranges and groups", "[fleet]") {
  auto nodes = merge({{"gpu1"}, {"gpu2"}, {"gpu3"}}, {{"storage1", "", "", {}, {"servers"}, {}}});
  REQUIRE(nodes);
  (*nodes)[0].groups.emplace_back("a100");
  const auto chosen = [&](const std::string& pattern) {
    const auto found = select(*nodes, pattern);
    return found ? names_of(*found) : Names{"error: " + found.error().message + "; " + found.error().hint};
  };
  CHECK(chosen("all") == Names{"gpu1", "gpu2", "gpu3", "storage1"});
  CHECK(chosen("clients") == Names{"gpu1", "gpu2", "gpu3"});
  CHECK(chosen("@servers") == Names{"storage1"});
  CHECK(chosen("all!gpu2") == Names{"gpu1", "gpu3", "storage1"});
  CHECK(chosen("clients!@a100") == Names{"gpu2", "gpu3"});
  CHECK(chosen("a100,storage1") == Names{"gpu1", "storage1"});
  CHECK(chosen("gpu[1-4]") == Names{"error: no node is called `gpu4`; did you mean `gpu1`?"});
  CHECK(chosen("@a10") == Names{"error: no group is called `a10`; did you mean `a100`?"});
}

TEST_CASE("the list as other tools read it", "[fleet]") {
  std::vector<Node> nodes{{"gpu01", "", "", 8U, {"clients"}, {}}, {"gpu02", "10.0.0.2", "root", 8U, {"clients"}, {}}};
  CHECK(format_nodes(nodes, "hostfile").value() == "gpu01 slots=8\ngpu02 slots=8\n");
  CHECK(format_nodes(nodes, "slurm").value() == "gpu[01-02]\n");
  CHECK(format_nodes(nodes, "names").value() == "gpu01\ngpu02\n");
  CHECK(format_nodes(nodes, "clustershell").value() == "sharefs:\n  all: 'gpu[01-02]'\n  clients: 'gpu[01-02]'\n");
  CHECK(format_nodes(nodes, "ansible").value() ==
        "gpu01\ngpu02 ansible_host=10.0.0.2 ansible_user=root\n\n[clients]\ngpu01\ngpu02\n");
  nodes[1].slots.reset();
  CHECK(format_nodes(nodes, "openmpi").value() == "gpu01 slots=8\ngpu02\n");
  CHECK_FALSE(format_nodes(nodes, "hostfile"));
}
