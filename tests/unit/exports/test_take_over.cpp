#include "exports/take_over.hpp"
#include "support/catch.hpp"
#include "unit/exports/told.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::exports;
using test::told;
using Lines = std::vector<std::string>;

namespace {

struct Host {
  std::map<std::string, std::string> texts;
  Actual actual;
};

/// /etc/exports and own file, in force.
Host host_with(const std::string& text, const std::string& own = "", const std::string& extra = "") {
  Host host;
  host.texts[k_exports_file] = text;
  host.actual.files.files.push_back(parse(text, k_exports_file));
  if (!own.empty())
    host.actual.files.files.push_back(parse(own, k_own_file));
  if (!extra.empty()) {
    host.texts["/etc/exports.d/zoo.exports"] = extra;
    host.actual.files.files.push_back(parse(extra, "/etc/exports.d/zoo.exports"));
  }
  host.actual.files.own = own.empty() ? std::nullopt : std::optional(own);
  host.actual.server.threads = 8;
  host.actual.facts.names["n1"] = {{"10.0.0.1"}, "n1.lab"};
  host.actual.facts.names["gone"] = {};
  host.actual.etab = what_the_text_says(host.actual.files.files, host.actual.facts).entries;
  return host;
}

/// sharefs.yaml as a text of exports(5).
Request wanted(const std::string& text) {
  Request request;
  request.exports = parse(text, "y").exports;
  return request;
}

TakeOver taken(const Host& host, const std::string& yaml) {
  return take_over(host.actual, wanted(yaml), host.texts, what_the_text_says);
}

} // namespace

TEST_CASE("comment_out: these lines and no other byte") {
  struct Row {
    std::string text, directory, after;
  };
  const std::string moved = "# moved to sharefs.exports: ";
  for (const auto& [text, directory, after] : std::vector<Row>{
           {"/a h(rw)\n/b h(rw)\n", "/a", moved + "/a h(rw)\n/b h(rw)\n"},
           {"# x\n\n  /a\th(rw)  # why  \n\t/b h\n", "/a", "# x\n\n" + moved + "  /a\th(rw)  # why  \n\t/b h\n"},
           {"/a h(rw)", "/a", moved + "/a h(rw)"}, // no newline at the end
           {"/a \\\n  h(rw) \\\n  i(ro)\n/b h\n", "/a", moved + "/a \\\n#   h(rw) \\\n#   i(ro)\n/b h\n"},
           {"/a h(rw)\n/b h\n/a i(rw)\n", "/a", moved + "/a h(rw)\n/b h\n" + moved + "/a i(rw)\n"},
           {"\"/a\" h(rw)\n/b h\n", "/a", moved + "\"/a\" h(rw)\n/b h\n"},
           {"/a h(rw) # \\\n/b h\n", "/a", moved + "/a h(rw) # \\\n/b h\n"}, // a comment does not go on
           {"\"/a\n\" h(rw)\n/b h\n", "/a\n", moved + "\"/a\n# \" h(rw)\n/b h\n"},
           {" \\\n /a h(rw)\n", "/a", " \\\n" + moved + " /a h(rw)\n"},
           {"/b h \"\" /a h\n", "/a", "-"}, // behind an empty word, in the middle of a line
       }) {
    std::set<Origin> lines;
    for (const auto& entry : parse(text, "f").exports)
      if (entry.directory == directory)
        lines.insert(entry.line);
    INFO(text);
    REQUIRE(lines.empty() == false);
    CHECK(comment_out(text, lines).value_or("-") == after);
  }
  CHECK_FALSE(comment_out("/a h\n", {{"f", 7, 1}}));
  CHECK_FALSE(comment_out("/a h\n", {{"f", 0, 0}}));
}

TEST_CASE("what is equal in effect moves, word for word different or not") {
  const auto row = GENERATE(values<std::pair<std::string, std::string>>({
      {"/a 10.0.0.1(rw)", "/a 10.0.0.1(rw,sync,no_subtree_check,root_squash)"},
      {"/a 10.0.0.1", "/a 10.0.0.1(ro)"},
      {"/a -rw,async 10.0.0.1 10.0.0.2(ro)", "/a 10.0.0.2(ro,async) 10.0.0.1(rw,async)"},
      {"/a 10.0.0.1(rw)\n/a 10.0.0.2(rw)", "/a 10.0.0.1(rw) 10.0.0.2(rw)"},
      {"/a/ 10.0.0.1(rw)", "/a 10.0.0.1(rw)"},
      {"/a n1(rw)", "/a N1(rw)"},
      {"/a gone(rw)", "/a gone(rw)"},                      // which does not resolve now
      {"/a 10.0.0.1(rw) 10.0.0.1(ro)", "/a 10.0.0.1(rw)"}, // the first one counts
      {"/a 10.0.0.0/24(rw) 10.0.0.0/16(ro) h(rw)", "/a h(rw) 10.0.0.0/24(rw) 10.0.0.0/16(ro)"},
      {"/a *(ro) @group(rw) 10.0.0.0/8(rw)", "/a 10.0.0.0/8(rw) @group(rw) *(ro)"},
      {"/a h(rw)\n/b h(rx)\n/c h(rw)", "/a h(rw)"}, // an error behind it
  }));
  CAPTURE(row.first, row.second);
  const auto host = host_with(row.first + "\n");
  const auto result = taken(host, row.second + "\n");
  CHECK(told(result.found).empty());
  REQUIRE(result.request.moved.size() == 1);
  CHECK(result.request.moved[0].path == k_exports_file);
  CHECK(result.request.moved[0].before == row.first + "\n");
  CHECK(result.request.access.empty());
  CHECK_FALSE(result.request.exactly);
  // The round trip: the files as they will be export the same.
  const auto composed = compose(result.actual, result.request, what_the_text_says);
  CHECK(composed.retired.empty());
  CHECK(composed.adhoc.empty());
  const auto plan = plan_export(result.actual, result.request, composed);
  CHECK(std::ranges::any_of(plan.steps,
                            [](const plan::Step& step) { return describe(step.action) == "write /etc/exports"; }));
  CHECK(changes(host.actual.etab, composed.expected.entries, host.actual.facts, false).empty());
}

TEST_CASE("what differs is said, and nothing moves") {
  struct Row {
    std::string text, yaml;
    Lines told;
  };
  for (const auto& [text, yaml, expected] : std::vector<Row>{
           {"/a 10.0.0.1(rw)", "/a 10.0.0.1(ro)", {"SF151 error 1:4"}},
           {"/a 10.0.0.1(rw,no_root_squash)", "/a 10.0.0.1(rw)", {"SF151 error 1:4"}},
           {"/a 10.0.0.1(rw) 10.0.0.2(rw)", "/a 10.0.0.1(rw)", {"SF151 error 1:17"}},
           {"/a 10.0.0.1(rw)", "/a 10.0.0.1(rw) 10.0.0.2(rw)", {"SF151 error 1:17"}},
           {"/a 10.0.0.1(rw) gone(rw)", "/a 10.0.0.1(rw)", {"SF151 error 1:17"}}, // it may resolve tomorrow
           {"/a 10.0.0.1(rw)\n/b h(rw)", "/b h(rw)\n/a 10.0.0.1(ro)", {"SF151 error 2:4"}},
           {"/a n1(rw)", "/a 10.0.0.1(rw)", {"SF151 error 1:4", "SF151 error 1:4"}}, // its address may change
           // Of two networks that hold a host mountd takes the first.
           {"/a 10.0.0.0/24(rw) 10.0.0.0/16(ro)", "/a 10.0.0.0/16(ro) 10.0.0.0/24(rw)", {"SF151 error /a"}},
           {"/b h \"\" /a 10.0.0.1(rw)", "/a 10.0.0.1(rw)", {"SF152 error 1:9"}},
           // Its error hides /c, which would come to light.
           {"/a h(rw) i(rx)\n/c h(rw)", "/a h(rw)", {"SF152 error 1:1"}},
       }) {
    INFO(text << " | " << yaml);
    const auto result = taken(host_with(text + "\n"), yaml + "\n");
    CHECK(told(result.found) == expected);
  }
}

TEST_CASE("what is exported has to be what the files say") {
  auto host = host_with("/a 10.0.0.1(rw)\n");
  host.actual.etab = parse_etab("/a\t10.0.0.1(ro)\n");
  CHECK(told(taken(host, "/a 10.0.0.1(rw)\n").found) == Lines{"SF153 error /var/lib/nfs/etab"});
  host.actual.etab = parse_etab("/a\t10.0.0.1(rw)\n/hand\th(rw)\n"); // that one is the reload's business
  CHECK(taken(host, "/a 10.0.0.1(rw)\n").found.empty());
}

TEST_CASE("own file, other files, and nothing to take over") {
  CHECK(taken(host_with("/b h(rw)\n"), "/a h(rw)\n").request.moved.empty());
  // Cut off after own file was written: both have it.
  const auto again = taken(host_with("/a h(rw)\n", "/a h(rw)\n"), "/a h(rw)\n");
  CHECK(again.found.empty());
  CHECK(again.request.moved.size() == 1);
  // Own file has a client more, which stays; /etc/exports.d/zoo.exports is read after own file.
  const auto several = taken(host_with("/a h(rw)\n", "/a i(rw)\n/o h(rw)\n", "/z h(rw)\n/a j(rw)\n"),
                             "/a h(rw) i(rw) j(rw)\n/z h(rw)\n/new h(rw)\n");
  CHECK(several.found.empty());
  REQUIRE(several.request.moved.size() == 2);
  CHECK(several.request.moved[1].path == "/etc/exports.d/zoo.exports");
  CHECK(several.request.exports.size() == 4); // not /new, which is not exported yet
  const auto composed = compose(several.actual, several.request, what_the_text_says);
  CHECK(composed.exports.size() == 5);
}
