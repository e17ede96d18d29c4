#include "support/catch.hpp"
#include "unit/exports/told.hpp"

using namespace sharefs::exports;

namespace {

// As exportfs 2.6.2 wrote it.
constexpr const char* k_etab_text =
    "/mnt/"
    "c\t10.0.0.5(rw,sync,wdelay,hide,nocrossmnt,secure,root_squash,no_all_squash,no_subtree_check,secure_locks,acl,"
    "no_pnfs,anonuid=65534,anongid=65534,sec=sys,rw,root_squash,no_all_squash)\n"
    "/mnt/sp\\040ace\tnode1.lab(rw,async,wdelay,hide,nocrossmnt,insecure,no_root_squash,no_all_squash,no_subtree_check,"
    "secure_locks,acl,no_pnfs,fsid=-1,anonuid=65534,anongid=65534,sec=sys,rw,insecure,no_root_squash,no_all_squash)\n"
    "/mnt/"
    "b\t(ro,sync,wdelay,hide,nocrossmnt,secure,root_squash,no_all_squash,no_subtree_check,secure_locks,acl,no_pnfs,"
    "anonuid=65534,anongid=65534,sec=sys,ro,root_squash,no_all_squash)\n";

std::vector<std::string> lines(const std::vector<Export>& etab) {
  std::vector<std::string> texts;
  for (const auto& entry : etab)
    texts.push_back(entry.directory + " " + entry.client + " " + summary(entry.settings));
  return texts;
}

using Lines = std::vector<std::string>;

} // namespace

TEST_CASE("etab is read") {
  CHECK(lines(parse_etab(k_etab_text)) ==
        Lines{"/mnt/c 10.0.0.5 rw", "/mnt/sp ace node1.lab rw,no_root_squash,insecure,async,fsid=4294967295",
              "/mnt/b * ro"});
  CHECK(parse_etab("").empty());
}

TEST_CASE("what is not understood in etab hides nothing else") {
  CHECK(lines(parse_etab("/a h(rw,brand_new,sec=sys,rw,shiny=3)\ngarbage\n/b\n\n/c i(ro)")) ==
        Lines{"/a h rw", "/c i ro"});
}

TEST_CASE("what is certain from the text, where exportfs cannot be asked") {
  using Outcomes = std::vector<std::vector<Outcome>>;
  const auto expected = [](const std::vector<std::string>& texts, const HostFacts& facts = {}) {
    std::vector<ExportsFile> files;
    for (std::size_t i = 0; i < texts.size(); ++i)
      files.push_back(parse(texts[i], "f" + std::to_string(i)));
    return predict_from_text(files, facts);
  };
  SECTION("the first of two entries for the same client wins, over files too") {
    const auto result = expected({"/a h(ro)\n", "/a H(rw) i(rw)"});
    CHECK(lines(result.entries) == Lines{"/a h ro", "/a i rw"});
    CHECK(result.outcomes == Outcomes{{{0}}, {{0, true}, {1}}});
  }
  SECTION("host bits are no duplicates") {
    CHECK(expected({"/a 10.0.0.1/24(ro) 10.0.0.0/24(rw)"}).entries.size() == 2);
  }
  SECTION("nor is another way to write a directory") {
    CHECK(expected({"/a h(ro)\n/a/ h(rw)"}).entries.size() == 1); // an existing one, after realpath
  }
  SECTION("names are the same client if their addresses are") {
    HostFacts facts;
    facts.names["n1"] = {{"10.0.0.1"}, "n1.lab"};
    facts.names["alias"] = {{"10.0.0.1"}, "n1.lab"};
    facts.names["gone"] = {};
    const auto result = expected({"/a n1(ro) alias(rw) gone(rw) 10.0.0.1(rw)"}, facts);
    CHECK(lines(result.entries) == Lines{"/a n1.lab ro"});
    CHECK(result.outcomes == Outcomes{{{0}, {0, true}, {}, {0, true}}});
  }
  SECTION("bad networks are dropped one by one, /0 is not") {
    const auto result = expected({"/a 10.0.0.0/33(rw) 10.0.0.0/0(rw) 10.0.0.1(rw)"});
    CHECK(lines(result.entries) == Lines{"/a 10.0.0.0/0 rw", "/a 10.0.0.1 rw"});
    CHECK(result.outcomes == Outcomes{{Outcome(), {0}, {1}}});
  }
  SECTION("a comma makes no two clients") {
    const auto result = expected({"/a h,i(rw)"});
    CHECK(result.entries.empty());
    CHECK(result.outcomes == Outcomes{{Outcome()}});
  }
  SECTION("links are resolved") {
    HostFacts facts;
    facts.directories["/link"].resolved = "/real";
    CHECK(lines(expected({"/link h(rw)"}, facts).entries) == Lines{"/real h rw"});
  }
}

TEST_CASE("whom a name stands for") {
  HostFacts facts;
  facts.names["n1"] = {{"fe80::1", "10.0.0.5"}, "n1.lab"};
  const auto same = [&](const std::string& a, const std::string& b) {
    const ExportIndex index(facts, {{"/a", a, {}, {}, {}, {}}});
    return index.find("/a", b).has_value();
  };
  CHECK(same("n1", "N1.lab"));
  CHECK(same("N1.LAB", "10.0.0.5"));
  CHECK(same("FE80::0:1", "n1"));
  CHECK(same("unknown", "UNKNOWN"));
  CHECK(same("*", "*"));
  CHECK_FALSE(same("n1", "10.0.0.6"));
  CHECK_FALSE(same("*.lab", "n1.lab"));
  CHECK_FALSE(same("10.0.0.11/22", "10.0.0.12/22"));
}
