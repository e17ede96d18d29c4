// Each case was tried with exportfs of nfs-utils 2.6.2, and etab looked at.
#include "support/catch.hpp"
#include "unit/exports/told.hpp"

using namespace sharefs;
using namespace sharefs::exports;
using Lines = std::vector<std::string>;

namespace {

struct Case {
  std::string text;
  Lines taken;     ///< what exportfs exports
  Lines lost;      ///< what it would, if it did not stop before
  Lines diagnoses; ///< of the syntax
};

void check(const Case& row) {
  CAPTURE(row.text);
  const auto file = parse(row.text, "f");
  CHECK(entries({file.read().begin(), file.read().end()}) == row.taken);
  CHECK(entries({file.lost().begin(), file.lost().end()}) == row.lost);
  CHECK(told(file.diagnoses) == row.diagnoses);
  CHECK(file.complete == (row.lost.empty() && std::none_of(file.diagnoses.begin(), file.diagnoses.end(), [](auto& one) {
                            return one.message.find("reads no further") != std::string::npos;
                          })));
}

} // namespace

TEST_CASE("lines that mean what they say") {
  check(GENERATE(values<Case>({
      {"", {}, {}, {}},
      {"# only a comment\n\n", {}, {}, {}},
      {"/a h(rw)", {"/a h rw"}, {}, {}},
      {"/a h(rw) i(ro,sync)\n", {"/a h rw", "/a i ro"}, {}, {}},
      {"/a h()", {"/a h ro"}, {}, {}},
      {"/a h(rw,)", {"/a h rw"}, {}, {}},
      {"/a h", {"/a h ro"}, {}, {}},
      {"/a -rw h i(ro)", {"/a h rw", "/a i ro"}, {}, {}},
      {"/a -rw h -ro i j(sync)", {"/a h rw", "/a i ro", "/a j ro"}, {}, {}},
      {"/a \\\n  h(rw) # comment\n/b i(rw)", {"/a h rw", "/b i rw"}, {}, {}},
      {"\"/sp ace\" h(rw)", {"/sp ace h rw"}, {}, {}},
      {"/sp\\040ace h(rw)", {"/sp ace h rw"}, {}, {}},
      {"/a \"h(rw, sync)\"", {"/a h rw"}, {}, {}},
      {"/a h(rw)\r\n/b i(rw)\r\n", {"/a h rw", "/b i rw"}, {}, {}},
      {"/a h(rw) # c\\\n/b i(rw)", {"/a h rw", "/b i rw"}, {}, {}},
      {"/a fe80::1%lo(rw) @group(rw) *.x(rw) gss/krb5(rw)",
       {"/a fe80::1%lo rw", "/a @group rw", "/a *.x rw", "/a gss/krb5 rw"},
       {},
       {}},
  })));
}

TEST_CASE("4 a sec= ends with its word, also where another word of defaults follows") {
  check(GENERATE(values<Case>({
      {"/a -sec=krb5 h -rw i", {"/a h ro,sec=krb5", "/a i ro,sec=krb5"}, {}, {}},
      {"/a -sec=krb5,rw h -ro i(sec=sys)", {"/a h rw,sec=krb5", "/a i sec=krb5,rw,sec=sys,ro"}, {}, {}},
  })));
  const auto file = parse("/a -sec=krb5 h -rw i", "f");
  CHECK(parse(format(file.exports), "again").exports.at(1).settings == file.exports.at(1).settings);
}

TEST_CASE("5 a NUL byte outside of quotes ends a word") {
  using namespace std::string_literals;
  check(GENERATE(values<Case>({
      {"/a h(rw)\0i(ro)"s, {"/a h rw", "/a i ro"}, {}, {"SF109 error 1:4"}},
      {"/a\0h(rw)"s, {"/a h rw"}, {}, {"SF109 error 1:1"}},
      {"/a \0 h(rw)"s, {"/a h rw"}, {}, {}},
      {"/a \"h(rw\0)\" i"s, {}, {}, {"SF109 error 1:4", "SF106 error 1:4"}},
  })));
}

TEST_CASE("5 the hint for a blank in the options writes a comma in its place") {
  const auto hint = [](const std::string& text) { return parse(text, "f").diagnoses.at(0).hint; };
  CHECK(hint("/a h(rw sync)") == "write `h(rw,sync)`");
  CHECK(hint("/a h(rw, sync)") == "write `h(rw,sync)`");
  CHECK(hint("/a h(rw ,sync )") == "write `h(rw,sync)`");
  CHECK(hint("/a h( rw)") == "write `h(rw)`");
  CHECK(hint("/a h(rw i(ro)") == "write `h(rw)`");
}

TEST_CASE("the space trap: the host gets ro, and everybody the options") {
  check(GENERATE(values<Case>({
      {"/a h (rw,no_root_squash)", {"/a h ro", "/a * rw,no_root_squash"}, {}, {"SF101 error 1:6"}},
      {"/a h (rw) i (rw)", {"/a h ro", "/a * rw", "/a i ro", "/a * rw"}, {}, {"SF101 error 1:6", "SF101 error 1:13"}},
      {"/a -rw h (ro)", {"/a h rw", "/a * ro"}, {}, {"SF101 error 1:10"}},
      {"/a (rw)", {"/a * rw"}, {}, {"SF102 warning 1:4"}},
      {"/a h(ro) (rw)", {"/a h ro", "/a * rw"}, {}, {"SF102 warning 1:10"}},
      {"/a", {"/a * ro"}, {}, {"SF102 warning 1:1"}},
      {"/a -rw\n/b h(rw)", {"/a * rw", "/b h rw"}, {}, {"SF102 warning 1:1"}},
      {"/a h(ro) -rw", {"/a h ro", "/a * rw"}, {}, {"SF102 warning 1:1"}},
      {"/a(rw) h", {"/a(rw) h ro"}, {}, {}}, // a directory of that name
  })));
  const auto file = parse("/a h (rw,no_root_squash)", "f");
  CHECK(file.diagnoses.front().message ==
        "the space before `(` gives `h` only `ro`, and gives everyone `rw,no_root_squash`");
  CHECK(file.diagnoses.front().hint == "remove the space: `h(rw,no_root_squash)`");
}

TEST_CASE("errors at which exportfs stops reading the file") {
  check(GENERATE(values<Case>({
      {"/a h(rw, sync)\n/b i(rw)", {}, {"/b i rw"}, {"SF106 error 1:4", "SF111 error 2:1"}},
      {"/a h(rw)#c", {}, {}, {"SF106 error 1:9"}},
      {"/a h(rw),i(rw)", {}, {}, {"SF106 error 1:9"}},
      {"/a h(rw)x", {}, {}, {"SF106 error 1:9"}},
      {"/a h(rw", {}, {}, {"SF106 error 1:4"}},
      {"/a h(RW)", {}, {}, {"SF107 error 1:6"}},
      {"/a h(rw,,sync)", {}, {}, {"SF107 error 1:9"}},
      {"/a h(,rw)", {}, {}, {"SF107 error 1:6"}},
      {"/a h(rw ,sync)", {}, {}, {"SF106 error 1:4"}},
      {"/a \"h(rw ,sync)\"", {}, {}, {"SF107 error 1:7"}},
      {"/a -roo h i\n/b j", {}, {"/a h ro", "/a i ro", "/b j ro"}, {"SF107 error 1:5", "SF111 error 1:1"}},
      {"/a g(rw) h(sec=sys:krb) i(rw)\n/b j(rw)\n",
       {"/a g rw"},
       {"/a i rw", "/b j rw"},
       {"SF108 error 1:12", "SF111 error 1:1"}},
      {"/a h(rw)\n\r\n/b i(rw)", {"/a h rw"}, {"/b i rw"}, {"SF109 error 2:1", "SF111 error 3:1"}},
      {"/a h(rw)\n\"\" i(rw)\n/b j(rw)", {"/a h rw"}, {"/b j rw"}, {"SF109 error 2:1", "SF111 error 3:1"}},
      {"/a h(roo)\n/b i(rww)\n/c j(rw)", {}, {"/c j rw"}, {"SF107 error 1:6", "SF107 error 2:6", "SF111 error 3:1"}},
      {"/a h(squash_uids=0-15,20)", {}, {}, {"SF107 error 1:23"}},
  })));
}

TEST_CASE("exportfs has stopped at an option whose text looks right") {
  const std::string text = "/a h(rw) i(\"ro,  anonuid=no\\142ody\")\n/b -sync,anonuid=nobody j\n/c k(xprtsec=tls)\n";
  CHECK(parse(text, "f").complete);
  const auto file = parse(text, "f", "anonuid=nobody");
  CHECK(told(file.diagnoses) == Lines{"SF108 error 1:18", "SF108 error 2:10", "SF111 error 2:1"});
  CHECK(
      file.diagnoses[0].message ==
      "`anonuid=nobody` is wrong: exportfs takes user and group ids, not names; exportfs drops this entry and reads no "
      "further in this file");
  CHECK(entries({file.read().begin(), file.read().end()}) == Lines{"/a h rw"});
  CHECK(entries({file.lost().begin(), file.lost().end()}) == Lines{"/b j ro", "/c k ro,xprtsec=tls"});
  const auto older = parse(text, "f", "xprtsec=tls");
  CHECK(told(older.diagnoses) == Lines{"SF121 error 3:6"});
  CHECK(older.diagnoses[0].hint == "`xprtsec` came with nfs-utils 2.6.4");
  CHECK(told(parse("/a h(pnfs)", "f", "pnfs").diagnoses) == Lines{"SF121 error 1:6"});
}

TEST_CASE("a client of 512 bytes or more stops the file, and so does a directory of 1,025") {
  const auto client = parse("/a " + std::string(508, 'h') + "(rw)\n/b i(rw)", "f");
  CHECK(told(client.diagnoses) == Lines{"SF109 error 1:4", "SF111 error 2:1"});
  CHECK(parse("/a " + std::string(507, 'h') + "(rw)", "f").complete);
  CHECK_FALSE(parse("/" + std::string(1024, 'a') + " h(rw)", "f").complete);
  CHECK(parse("/" + std::string(1023, 'a') + " h(rw)", "f").complete);
}

TEST_CASE("words that are not what they look like") {
  check(GENERATE(values<Case>({
      {"/a \"\" h(rw)\n/b i(rw)", {"/a * ro", "/a h rw", "/b i rw"}, {}, {"SF102 warning 1:1"}},
      {"/a h(rw) \"\" i(rw)\n/b j(rw)",
       {"/a h rw", "i(rw) * ro", "/b j rw"},
       {},
       {"SF109 error 1:10", "SF102 warning 1:13"}},
      {"/a -rw -sync h", {"/a h rw"}, {}, {"SF110 error 1:8"}},
      {"\"/a h(rw)\n/b i(rw)\n", {"/a h(rw)\n/b i(rw)\n * ro"}, {}, {"SF109 error 1:1", "SF102 warning 1:1"}},
      {"/a h\\000x(rw)", {"/a h ro"}, {}, {"SF109 error 1:4"}},
      {"\\000 h(rw)", {" h rw"}, {}, {"SF109 error 1:1"}},
  })));
}

TEST_CASE("hints say what to write") {
  const auto hint = [](const std::string& text) { return parse(text, "f").diagnoses.front().hint; };
  CHECK(hint("/a h(rw, sync,  no_acl) i(rw)") == "write `h(rw,sync,no_acl)`");
  CHECK(hint("/a h(rw)#c") == "write `h(rw) #c`");
  CHECK(hint("/a h(rw),i(rw)") == "write `h(rw) i(rw)`");
  CHECK(hint("/a h(RW)") == "options are written in lower case: `rw`");
  CHECK(hint("/a h(no_rootsquash)") == "did you mean `no_root_squash`?");
  CHECK(hint("/a h(anon_uid=5)") == "did you mean `anonuid=`?");
  CHECK(hint("/a h(rw,,ro)") == "remove one of the two commas");
  CHECK(hint("/a \"h(rw ,ro)\"") == "remove the space before the comma");
}

TEST_CASE("what is lost is named, and no more than five of it") {
  const auto file = parse("/a h(x)\n/b a b c d e f(rw)", "f");
  REQUIRE(file.diagnoses.size() == 2);
  CHECK(file.diagnoses.back().message ==
        "not exported because of the error before it: /b to a, /b to b, /b to c, /b to d, /b to e, and 1 more");
}
