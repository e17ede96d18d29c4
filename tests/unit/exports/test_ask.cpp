// What exportfs is asked, and what is made of its answer. What it really answers is compared in tests/differential.
#include "exports/ask.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "sys/programs/isolation.hpp"
#include "unit/exports/told.hpp"

using namespace sharefs;
using namespace sharefs::exports;
using Lines = std::vector<std::string>;

namespace {

/// A machine on which exportfs answers this.
struct Machine {
  explicit Machine(sys::Completed answer) {
    system.machine.on_run = [this, answer = std::move(answer)](const sys::Command& command) {
      asked = *command.isolation;
      return answer;
    };
  }
  /// `files` become as exportfs reads them.
  ExpectedEtab ask(std::vector<ExportsFile>& files, const HostFacts& facts = {}, Scope scope = Scope::host) {
    return ask_exportfs(system, files, facts, scope);
  }
  ExpectedEtab ask(std::vector<ExportsFile>&& files, const HostFacts& facts = {}, Scope scope = Scope::host) {
    return ask_exportfs(system, files, facts, scope);
  }
  sharefs::test::ScriptedSystem system;
  sys::Isolation asked;
};

sys::Completed answer(std::string etab, std::string said = "", int exit_code = 0) {
  sys::Completed completed;
  completed.exit_code = exit_code;
  completed.out = std::move(etab);
  completed.err = std::move(said);
  return completed;
}

Lines places(const ExpectedEtab& expected) {
  Lines lines;
  for (const auto& entry : expected.entries)
    lines.push_back(entry.directory + " " + entry.client + " " + entry.origin.text());
  return lines;
}

} // namespace

TEST_CASE("exportfs sees the texts, and the host's other files") {
  Machine machine(answer(""));
  SECTION("files of the host") {
    machine.ask({parse("/a h(rw)", k_exports_file), parse("/b h(rw)", k_own_file)});
    CHECK(machine.asked.files.at(k_exports_file) == "/a h(rw)");
    CHECK(machine.asked.files.at(k_own_file) == "/b h(rw)");
    CHECK(machine.asked.result == k_etab);
  }
  SECTION("files that were given, as if they were those of the host") {
    machine.ask({parse("/a h(rw)", "one"), parse("/b h(rw)", "two")}, {}, Scope::given);
    CHECK(machine.asked.files.at(k_exports_file) == "/a h(rw)");
    CHECK(machine.asked.files.at("/etc/exports.d/000001.exports") == "/b h(rw)");
    CHECK(std::ranges::find(machine.asked.empty, k_exports_directory) != machine.asked.empty.end());
  }
}

TEST_CASE("a host without exports needs no exportfs") {
  Machine machine(answer(""));
  machine.system.machine.on_run = [](const sys::Command&) -> Result<sys::Completed> {
    return fail(ErrorCode::not_found, "`exportfs` is not installed");
  };
  CHECK(machine.ask({}).not_asked.empty());
  CHECK(machine.ask({parse("# nothing\n", k_exports_file)}).not_asked.empty());
  CHECK_FALSE(machine.ask({parse("/a h(rw)", k_exports_file)}).not_asked.empty());
}

TEST_CASE("names are answered by /etc/hosts in there") {
  Machine machine(answer("/a\tdns(rw)\n/a\tn1.lab(rw)\n"));
  HostFacts facts;
  facts.hosts = "10.0.0.1 n1.lab N1 # not n9\n";
  facts.names["n1"] = {{"10.0.0.1"}, "n1.lab"};
  facts.names["dns"] = {{"10.0.0.2", "fd00::2"}, "www.dns.lab"};
  facts.names["gone"] = {};
  facts.names["fe80::1%eth0"] = {{"fe80::1%eth0"}, ""};
  facts.names["fe80::1%eth9"] = {};
  std::vector<ExportsFile> files{
      parse("/a n1(rw) dns(rw) gone(rw) n9 10.0.0.9 *.lab @g fe80::1%eth0 fe80::1%eth9 fe80::1%2 a,b", k_exports_file)};
  const auto expected = machine.ask(files, facts);
  CHECK(machine.asked.files.at("/etc/hosts") ==
        "10.0.0.1 n1.lab N1 # not n9\n\n10.0.0.2 dns\n\nfd00::2 dns\n\n240.0.0.1 n9\n");
  CHECK(machine.asked.interfaces == Lines{"eth0"});
  CHECK(places(expected) ==
        Lines{"/a n1.lab /etc/exports:1:4", "/a www.dns.lab /etc/exports:1:11"}); // by its real name
}

TEST_CASE("the lines of etab get the places of the files") {
  Machine machine(answer("/b\tj(ro)\n/a\th(rw)\n/real\th(rw)\n/more\tx(rw)\n"));
  HostFacts facts;
  facts.directories["/link"].resolved = "/real";
  std::vector<ExportsFile> files{parse("/a h(rw) H(ro) i(rw)\n/b j(rw)\n", "one"), parse("/link h(rw)", "two")};
  const auto expected = machine.ask(files, facts);
  CHECK(places(expected) == Lines{"/a h one:1:4", "/b j one:2:4", "/real h two:1:7", "/more x /var/lib/nfs/etab:4:1"});
  CHECK(expected.entries[1].settings.writable() == false); // as etab has it
  CHECK(expected.outcomes == std::vector<std::vector<Outcome>>{{{0}, {0, true}, {}, {1}}, {{2}}});
  CHECK(told(diagnose(files, expected, facts)) == Lines{"SF115 error 1:10", "SF122 error 1:16"});
}

TEST_CASE("a file with a slash behind it is a path that exportfs cannot resolve") {
  HostFacts facts;
  for (const auto* path : {"/file", "/file/", "/file/."}) {
    facts.directories[path].resolved = "/file";
    facts.directories[path].kind = sys::EntryKind::file;
  }
  const std::vector<ExportsFile> files{parse("/file h(rw)\n/file/ h(ro)\n/file/. h(ro)\n", "f")};
  const auto expected = read_answer("/file/.\th(ro)\n/file\th(rw)\n/file/\th(ro)\n", files, facts);
  CHECK(expected.outcomes == std::vector<std::vector<Outcome>>{{{0}, {1}, {2}}});
}

TEST_CASE("a host that shares an address with one before it has that one's line, and no other does") {
  Machine machine(answer("/a\tfirst(rw)\n/b\tfirst(ro)\n/a\tthird(ro)\n"));
  HostFacts facts;
  facts.names["first"] = {{"10.0.0.1"}, "first"};
  facts.names["second"] = {{"10.0.0.3", "10.0.0.1"}, "second"};
  facts.names["third"] = {{"10.0.0.3"}, "third"}; // exportfs has no host with this address before it
  std::vector<ExportsFile> files{parse("/a first(rw)\n/b second(ro)\n/a third(ro)\n", "f")};
  CHECK(places(machine.ask(files, facts)) == Lines{"/a first f:1:4", "/b first f:2:4", "/a third f:3:4"});
  CHECK(places(predict_from_text(files, facts)) == Lines{"/a first f:1:4", "/b first f:2:4", "/a third f:3:4"});
}

TEST_CASE("an entry at which exportfs has stopped takes no line of one that it has read") {
  std::vector<ExportsFile> files{parse("/b h(rw)\n/a a(rw,xprtsec=tls)\n/b h(ro)\n", "/etc/exports"),
                                 parse("/a b(ro)\n/b 10.0.0.3(ro)\n", "/etc/exports.d/two.exports")};
  HostFacts facts; // two hosts have the first name of /etc/hosts that 10.0.0.2 has
  facts.names["a"] = {{"10.0.0.2"}, "a"};
  facts.names["b"] = {{"10.0.0.2", "10.0.0.3"}, "a"};
  facts.names["h"] = {{"10.0.0.9"}, "h"};
  Machine machine(
      answer("/b\th(rw)\n/a\ta(ro)\n/b\ta(ro)\n", "exportfs: /etc/exports:2: unknown keyword \"xprtsec=tls\"\n", 1));
  const auto expected = machine.ask(files, facts);
  CHECK(places(expected) ==
        Lines{"/b h /etc/exports:1:4", "/a a /etc/exports.d/two.exports:1:4", "/b a /etc/exports.d/two.exports:2:4"});
  auto found = told(diagnose(files, expected, facts));
  std::erase_if(found, [](const std::string& one) { return one.starts_with("SF144"); });
  CHECK(found == Lines{"SF121 error 2:9", "SF111 error 3:1"});
}

TEST_CASE("a line end in a client or an option breaks a line of etab") {
  const auto broken = [](const std::string& text, const std::string& etab) {
    Machine machine(answer(etab));
    std::vector<ExportsFile> files{parse(text, "f")};
    return told(diagnose(files, machine.ask(files), {}));
  };
  CHECK(broken("/a *\\012x(rw) h(ro)\n", "/a\th(ro)\n/a\t*\nx(rw)\n") == Lines{"SF141 error 1:4"});
  CHECK(broken("/a h(rw,mp=/a\\012b)\n", "/a\th(rw,mp=/a\nb)\n") == Lines{"SF141 error 1:4"});
  CHECK(broken("/a -mp=/a\\012b h\n", "/a\th(rw,mp=/a\nb)\n") == Lines{"SF141 error 1:16"});
  CHECK(broken("/a h\\012i(rw)\n", "") == Lines{"SF109 error 1:4"}); // no host, so that etab has nothing of it
  CHECK(broken("/a h(rw,fsid=\\0125)\n", "") == Lines{"SF122 error 1:4"});
}

TEST_CASE("a line of etab that mountd cannot read") {
  const auto etab = GENERATE(as<std::string>(), "/a\th(rw,squash_gids=anonuid=65534,anongid=65534)\n", "/a\th i(rw)\n");
  Machine machine(answer(etab));
  std::vector<ExportsFile> files{parse("/a h(rw)\n/a \"h i\"(rw)\n", "f")};
  CHECK(machine.ask(files).unreadable == std::vector<std::size_t>{0});
  CHECK(Machine(answer("/a\th(rw,option_of_tomorrow)\n")).ask(files).unreadable.empty());
}

TEST_CASE("what exportfs says of a line that is right by the text") {
  Machine machine(answer("/a\th(rw)\n",
                         "exportfs: /etc/exports:1: unknown keyword \"xprtsec=tls\"\n"
                         "exportfs: /etc/exports.d/a:b.exports: 1: something new\n"
                         "exportfs: Failed to stat /a: No such file or directory\n",
                         1));
  // exportfs does not count lines that end in a comment
  std::vector<ExportsFile> files{parse("# head\n/a h(rw) # one\n/b h(rw,xprtsec=tls)\n/c h(rw)\n", k_exports_file),
                                 parse("\n/a h(rw)\n/d h(rw)\n", "/etc/exports.d/a:b.exports")};
  const auto expected = machine.ask(files);
  CHECK(expected.not_asked.empty());
  REQUIRE(expected.complaints.size() == 1);
  const auto found = diagnose(files, expected, {});
  CHECK(told(found) == Lines{"SF121 error 3:9", "SF111 error 4:1", "SF115 warning b.exports:2:4",
                             "SF157 error b.exports:2:4", "SF111 error b.exports:3:1"});
  CHECK(found[0].hint == "`xprtsec` came with nfs-utils 2.6.4");
}

TEST_CASE("what exportfs says of a file whose name has a line end, or a colon and a line end") {
  for (const auto* name : {"/etc/exports.d/a\nb.exports", "/etc/exports.d/a: 1\n\nexportfs: b.exports"}) {
    CAPTURE(name);
    Machine machine(answer("", std::string("exportfs: ") + name + ":1: unknown keyword \"xprtsec=tls\"\n", 1));
    std::vector<ExportsFile> files{parse("/a h(rw,xprtsec=tls)\n/b h(rw)\n", name)};
    const auto expected = machine.ask(files);
    CHECK(expected.complaints.empty());
    CHECK(files[0].refused == "xprtsec=tls");
    const auto found = diagnose(files, expected, {});
    REQUIRE(found.size() == 2);
    CHECK((found[0].code == "SF121" && found[1].code == "SF111"));
  }
}

TEST_CASE("where exportfs cannot be asked, that is said") {
  const auto asked = [](const sys::Completed& completed) {
    Machine machine(completed);
    return machine.ask({parse("/a h(rw) h(ro)", "f")});
  };
  auto late = answer("");
  late.timed_out = true;
  for (const auto& completed :
       {late, answer("", "", 139), answer("/a\th(rw)\n", "", 126), answer(std::string(64U << 20U, 'x'))}) {
    const auto expected = asked(completed);
    CHECK_FALSE(expected.not_asked.empty());
    CHECK(expected.entries.size() == 1);
    CHECK(expected.cure.empty() == (completed.exit_code != 139));
    std::vector<ExportsFile> files{parse("/a h(rw) h(ro)", "f")};
    const auto found = diagnose(files, expected, {});
    REQUIRE(found.size() == 2);
    CHECK(found[1].code == "SF158");
    CHECK((found[1].severity == Severity::error) == !expected.cure.empty());
    CHECK((found[1].hint.find("squash_uids") != std::string::npos) == (completed.exit_code == 139));
  }
  sharefs::test::ScriptedSystem without; // knows no exportfs
  std::vector<ExportsFile> files{parse("/a h(rw)", "f")};
  CHECK_FALSE(ask_exportfs(without, files, {}, Scope::host).not_asked.empty());
}

TEST_CASE("exportfs does not wait for a directory that does not answer") {
  sharefs::test::ScriptedSystem system;
  HostFacts facts;
  facts.waits_for = "/hung";
  std::vector<ExportsFile> files{parse("/hung h(rw)", "f")};
  const auto expected = ask_exportfs(system, files, facts, Scope::host);
  CHECK(expected.not_asked == "`exportfs` would wait for `/hung`, which does not answer");
  CHECK(expected.cure.find("sharefs status") != std::string::npos);
  CHECK(system.calls().empty());
}
