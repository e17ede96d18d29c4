#include "exports/parse.hpp"
#include "exports/plan_export.hpp"
#include "support/catch.hpp"
#include "unit/exports/told.hpp"

using namespace sharefs;
using namespace sharefs::exports;
using Lines = std::vector<std::string>;

namespace {

/// Own exports as text; places are "own:LINE:COLUMN". Others are in /etc/exports.
Composed composed(const std::string& text, const HostFacts& facts = {}, const std::string& others = "") {
  Composed composed;
  composed.files = {parse(others, k_exports_file), parse(text, "own")};
  composed.exports = composed.files[1].exports;
  composed.expected = predict_from_text(composed.files, facts);
  return composed;
}

sys::NfsProbe listing(std::vector<sys::ExportListing> exports, sys::StageOutcome outcome = sys::StageOutcome::ok) {
  sys::NfsProbe probe;
  probe.host = "10.0.0.1";
  probe.stages.push_back({sys::ProbeStage::exports, outcome, {}, "detail", "", ""});
  probe.exports = std::move(exports);
  return probe;
}

} // namespace

TEST_CASE("etab is compared by meaning, client by client") {
  struct Case {
    std::string wanted, etab;
    Lines told;
  };
  const auto row = GENERATE(values<Case>({
      {"/a 10.0.0.1(rw)", "/a\t10.0.0.1(rw,sync,wdelay,secure,root_squash,sec=sys,rw,root_squash)", {}},
      {"/a *(rw)", "/a\t*(rw)", {}},
      {"/a 10.0.0.1(rw) 10.0.0.2(rw)", "/a\t10.0.0.1(rw)", {"SF130 error 1:17"}},
      {"/a 10.0.0.1(rw)", "/a\t10.0.0.1(ro)", {"SF131 error 1:4"}},
      {"/a 10.0.0.1(rw)", "/b\t10.0.0.1(rw)", {"SF130 error 1:4"}},
      {"/a n1(rw)", "/a\tn1.lab(rw)", {}}, // by its canonical name
      {"/a alias(rw)", "/a\tn1.lab(rw)", {}},
      {"/link h(rw)", "/real\th(rw)", {}},
  }));
  CAPTURE(row.wanted, row.etab);
  HostFacts facts;
  facts.names["n1"] = facts.names["alias"] = {{"10.0.0.5"}, "n1.lab"};
  facts.directories["/link"].resolved = "/real";
  CHECK(told(verify_etab(composed(row.wanted, facts), facts, parse_etab(row.etab))) == row.told);
}

TEST_CASE("the hint is that of the client") {
  const auto missing = verify_etab(composed("/a other(rw) 10.0.0.1(rw)", {}), {}, {});
  REQUIRE(missing.size() == 2);
  CHECK(missing[0].hint == "try `getent hosts other`: it drops names that do not resolve");
  CHECK(missing[1].hint == "run `exportfs -ra` and read what it says");
}

TEST_CASE("entries of own file that were not asked for are told, but are no failure") {
  Composed kept;
  kept.files = {parse("/a 10.0.0.1(rw)", k_own_file)};
  kept.exports = kept.files[0].exports;
  kept.expected = predict_from_text(kept.files, {});
  const auto found = verify_etab(kept, {}, {});
  REQUIRE(found.size() == 1);
  CHECK_FALSE(has_errors(found));
}

TEST_CASE("what was withdrawn must be gone") {
  Composed none;
  none.retired = parse_etab("/a\th(rw)");
  CHECK(verify_etab(none, {}, {}).empty());
  CHECK(verify_etab(none, {}, none.retired).at(0).code == "SF134");
}

TEST_CASE("entries of others are as they were expected") {
  const auto now = [](const std::string& etab) {
    return verify_etab(composed("", {}, "/file h(rw)\n/late i(rw)\n"), {}, parse_etab(etab));
  };
  CHECK(now("/file\th(rw)\n/late\ti(rw)\n").empty());
  CHECK(now("/file\th(rw)\n").size() == 1);
  CHECK(now("/file\th(rw)\n/late\ti(ro)\n").size() == 1);
  CHECK_FALSE(has_errors(now("")));
}

TEST_CASE("the list over the network") {
  const auto wanted = composed("/a 10.0.0.1(rw) n1(rw)\n/b *(rw)");
  HostFacts facts;
  facts.directories["/b"].resolved = "/real/b";
  CHECK(verify_listing(wanted, facts, listing({{"/a", {"10.0.0.0/24"}}, {"/real/b", {}}})).empty());
  CHECK(told(verify_listing(wanted, facts, listing({{"/a", {"10.0.0.1"}}, {"/b", {}}}))) == Lines{"SF132 error 2:1"});
  SECTION("a server for version 4 only has no list") {
    CHECK(verify_listing(wanted, facts, listing({}, sys::StageOutcome::absent)).empty());
  }
  SECTION("a server that does not answer fails, with the stage") {
    auto probe = listing({}, sys::StageOutcome::skipped);
    probe.stages.insert(probe.stages.begin(),
                        {sys::ProbeStage::connect, sys::StageOutcome::failed, {}, "Connection refused", "", ""});
    const auto found = verify_listing(wanted, facts, probe);
    REQUIRE(found.size() == 1);
    CHECK(found[0].message.find("Connection refused") != std::string::npos);
  }
}
