#include "conda/prefix.hpp"

#include "support/catch.hpp"
#include "sys/fs/sha256.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::conda;
using namespace std::string_literals;

namespace {

const std::string k_placeholder = "/build/" + std::string(248, 'p');
const std::string k_a = "/data/share/conda/llm", k_b = "/opt/b", k_long = "/mnt/" + std::string(140, 'x') + "/llm";

std::string replaced(const std::string& content, PrefixChange change) {
  const auto edits = prefix_edits(content, change);
  if (!edits)
    return "error: " + edits.error().message;
  const auto result = apply_edits(content, *edits);
  REQUIRE(result);
  CHECK(apply_edits(*result, invert_edits(*edits)) == content);
  if (change.mode == FileMode::binary)
    CHECK(result->size() == content.size());
  return *result;
}

std::string wide(const std::string& text, std::size_t width, bool big) {
  std::string out;
  for (const char c : text)
    out += big ? std::string(width - 1, '\0') + c : c + std::string(width - 1, '\0');
  return out;
}

PrefixChange text_change(const std::string& from, const std::string& to) {
  PrefixChange change;
  change.from = from;
  change.to = to;
  return change;
}

PrefixChange binary_change(const std::string& from, const std::string& to, std::size_t slot = 0) {
  PrefixChange change = text_change(from, to);
  change.mode = FileMode::binary;
  change.slot = slot;
  return change;
}

} // namespace

TEST_CASE("requirement 9: text, wherever a path begins and ends", "[prefix]") {
  struct Row {
    std::string before, after;
  };
  const auto row = GENERATE(values<Row>({
      {"prefix=/data/share/conda/llm\n", "prefix=/opt/b\n"},
      {"/data/share/conda/llm", "/opt/b"},
      {"-L/data/share/conda/llm/lib -Wl,-rpath,/data/share/conda/llm/lib", "-L/opt/b/lib -Wl,-rpath,/opt/b/lib"},
      {"file:///data/share/conda/llm/x", "file:///opt/b/x"},
      {"a:/data/share/conda/llm:/data/share/conda/llm/bin", "a:/opt/b:/opt/b/bin"},
      {"It lies in /data/share/conda/llm.", "It lies in /opt/b."},
      {"'/data/share/conda/llm'", "'/opt/b'"},
      {"/data/share/conda/llm2/bin", "/data/share/conda/llm2/bin"},
      {"/data/share/conda/llm-old", "/data/share/conda/llm-old"},
      {"/data/share/conda/llm.old", "/data/share/conda/llm.old"},
      {"/mnt/data/share/conda/llm/bin", "/mnt/data/share/conda/llm/bin"},
      {"$ROOT/data/share/conda/llm", "$ROOT/data/share/conda/llm"},
      {"${ROOT}/data/share/conda/llm", "${ROOT}/data/share/conda/llm"},
      {"../data/share/conda/llm", "../data/share/conda/llm"},
      {"", ""},
  }));
  INFO(row.before);
  CHECK(replaced(row.before, text_change(k_a, k_b)) == row.after);
}

TEST_CASE("requirement 9: five encodings", "[prefix]") {
  const auto [width, big] =
      GENERATE(table<std::size_t, bool>({{1, false}, {2, false}, {2, true}, {4, false}, {4, true}}));
  const auto content = wide("x=" + k_a + "/bin, " + k_a + "2", width, big);
  CHECK(replaced(content, text_change(k_a, k_b)) == wide("x=" + k_b + "/bin, " + k_a + "2", width, big));
  const auto binary = "\1" + wide("\0"s + k_a + "/lib\0\0"s, width, big) + "\2";
  const auto room = k_a.size() - k_b.size();
  CHECK(replaced(binary, binary_change(k_a, k_b)) ==
        "\1" + wide("\0"s + k_b + "/lib\0\0"s + std::string(room, '\0'), width, big) + "\2");
  CHECK(PrefixNeedle(k_a).in(content));
  CHECK_FALSE(PrefixNeedle(k_b).in(content));
}

TEST_CASE("requirement 9: characters beyond ASCII", "[prefix]") {
  const std::string from = "/home/j\xc3\xb6rg/\xf0\x9f\x90\x8d";
  const auto utf16 = "/\0h\0o\0m\0e\0/\0j\0\xf6\0r\0g\0/\0\x3d\xd8\x0d\xdc"s;
  CHECK(replaced(utf16 + "\n\0"s, text_change(from, "/b/c")) == "/\0b\0/\0c\0\n\0"s);
  CHECK(replaced("\"" + from + "\"", text_change(from, "/b/c")) == "\"/b/c\"");
  CHECK(PrefixNeedle(from).in(utf16));
  CHECK(PrefixNeedle(from).in("\0/\0h\0o\0m\0e\0/\0j\0\xf6\0r\0g\0/\xd8\x3d\xdc\x0d"s));
}

TEST_CASE("requirement 9: strings of binary files keep their place", "[prefix]") {
  const auto pad = [](std::size_t count) { return std::string(count, '\0'); };
  const auto less = k_a.size() - k_b.size();
  CHECK(replaced("A\0"s + k_a + "/lib\0B"s, binary_change(k_a, k_b)) == "A\0"s + k_b + "/lib\0"s + pad(less) + "B");
  // k occurrences in one string
  CHECK(replaced(k_a + ":" + k_a + "/x:" + k_a + "\0Z"s, binary_change(k_a, k_b)) ==
        k_b + ":" + k_b + "/x:" + k_b + "\0"s + pad(3 * less) + "Z");
  // without a NUL it is no string
  CHECK(replaced(k_a + "/lib", binary_change(k_a, k_b)) == k_a + "/lib");
}

TEST_CASE("requirement 9: a longer prefix goes as far as the placeholder did", "[prefix]") {
  const auto package = "A\0"s + k_placeholder + "/ssl:" + k_placeholder + "/etc\0B"s;
  const auto slot = k_placeholder.size();
  const auto in_b = replaced(package, binary_change(k_placeholder, k_b));
  const auto in_a = replaced(in_b, binary_change(k_b, k_a, slot));
  CHECK(in_a == replaced(package, binary_change(k_placeholder, k_a)));
  CHECK(replaced(in_a, binary_change(k_a, k_b, slot)) == in_b);
  CHECK(replaced(in_a, binary_change(k_a, k_placeholder, slot)) == package);
  CHECK(replaced(in_b, binary_change(k_b, k_a)) ==
        "error: it is not known whether there is room for a prefix of more than 6 bytes");
  CHECK(replaced(in_b, binary_change(k_b, "/" + k_placeholder.substr(0, 200) + std::string(60, 'q'), slot)) ==
        "error: there is room for a prefix of 255 bytes, not of 261");
  auto used = in_b; // somebody has written into the slack
  used[used.find("/etc") + 100] = 'X';
  CHECK(replaced(used, binary_change(k_b, k_long, slot)).starts_with("error: "));
}

TEST_CASE("requirement 9: what is no string is not touched by a guess", "[prefix]") {
  auto change = binary_change(k_a, k_b);
  change.guessed = true;
  CHECK(replaced("#!" + k_a + "/bin/python\nPK\3\4\0"s, change) ==
        "error: the prefix stands in something else than a string");
  CHECK(replaced("\0x"s + k_a, change) == "error: the prefix stands in no string");
}

TEST_CASE("requirement 9: shebangs as rattler writes them", "[prefix]") {
  const auto head = "#!" + k_a + "/bin/python3.11";
  const auto exec = [](const std::string& program, const std::string& options) {
    return "#!/bin/sh\n'''exec' \"" + program + "\"" + options + " \"$0\" \"$@\" #'''";
  };
  CHECK(replaced(head + " -s\nx\n", text_change(k_a, k_b)) == "#!/opt/b/bin/python3.11 -s\nx\n");
  for (const auto& to : {k_long, "/opt/with space/b"s}) {
    const auto in_long = replaced(head + " -o test -x\nx\n", text_change(k_a, to));
    CHECK(in_long == exec(to + "/bin/python3.11", " -o test -x") + "\nx\n");
    CHECK(replaced(in_long, text_change(to, k_a)) == head + " -o test -x\nx\n"); // and its plain form back
    CHECK(replaced(in_long, text_change(to, "/a b/c")) == exec("/a b/c/bin/python3.11", " -o test -x") + "\nx\n");
    CHECK(replaced(head, text_change(k_a, to)) == exec(to + "/bin/python3.11", "")); // without a line end
    CHECK(replaced(exec(to + "/bin/python3.11", ""), text_change(to, k_a)) == head);
    // For another program these lines are no text.
    CHECK(replaced("#!" + k_a + "/bin/perl -w\n", text_change(k_a, to)) == "#!/usr/bin/env perl -w\n");
    CHECK(replaced("#!" + k_a + "/bin/python3-config\n", text_change(k_a, to)) == "#!/usr/bin/env python3-config\n");
  }
  const auto exactly = [&](std::size_t line) { return "/" + std::string(line - 2 - 1 - 9, 'y') + "/z/bin/sh"; };
  for (const std::size_t line : {126U, 127U, 128U}) {
    const auto to = exactly(line).substr(0, exactly(line).size() - 7);
    const auto result = replaced("#!" + k_a + "/bin/sh\n", text_change(k_a, to));
    CHECK((result == "#!/usr/bin/env sh\n") == (("#!" + to + "/bin/sh").size() > 127));
  }
  // The rest of the file gets the path as it is.
  CHECK(replaced(head + "\ny = '" + k_a + "'\n", text_change(k_a, "/a b/c")) ==
        exec("/a b/c/bin/python3.11", "") + "\ny = '/a b/c'\n");
}

TEST_CASE("requirement 9: what conda or pip has written for a long path stays as they have it", "[prefix]") {
  const auto of_conda = "#!/bin/sh\n'''exec' \"" + k_a + "/bin/python\" \"$0\" \"$@\"\n' '''\nx\n";
  CHECK(replaced(of_conda, text_change(k_a, k_b)) ==
        "#!/bin/sh\n'''exec' \"/opt/b/bin/python\" \"$0\" \"$@\"\n' '''\nx\n");
  const auto of_pip = "#!/bin/sh\n'''exec' " + k_a + "/bin/python \"$0\" \"$@\"\n' '''\nx\n";
  CHECK(replaced(of_pip, text_change(k_a, "/a b/c")) ==
        "#!/bin/sh\n'''exec' \"/a b/c/bin/python\" \"$0\" \"$@\"\n' '''\nx\n");
}

TEST_CASE("requirement 9: the package's content is known by its checksum", "[prefix]") {
  const auto package = "#!" + k_placeholder + "/bin/python -E\np = '" + k_placeholder + "'\n";
  const auto checksum = sys::sha256(package);
  const auto in_long = replaced(package, text_change(k_placeholder, k_long));
  CHECK(restores_package(in_long, text_change(k_long, k_placeholder), checksum));
  CHECK_FALSE(restores_package(in_long + " ", text_change(k_long, k_placeholder), checksum));
  const auto of_conda = "#!/usr/bin/env python -E\np = '" + k_long + "'\n"; // which no kernel starts
  auto back = text_change(k_long, k_placeholder);
  CHECK_FALSE(restores_package(of_conda, back, checksum));
  back.env_is_prefix = true;
  CHECK(restores_package(of_conda, back, checksum));
  back.to = k_b;
  CHECK(replaced(of_conda, back) == replaced(package, text_change(k_placeholder, k_b)));
}

TEST_CASE("prefixes that scripts name", "[prefix]") {
  using Names = std::vector<std::string>;
  CHECK(named_prefixes("#!/data/share/conda/llm/bin/python3.11 -s\n") == Names{"/data/share/conda/llm"});
  CHECK(named_prefixes("#!/bin/sh\n'''exec' \"/a b/c/bin/python\" \"$0\" \"$@\"\n' '''\n") == Names{"/a b/c"});
  CHECK(named_prefixes("#!/bin/sh\n'''exec' /a/c/bin/python \"$0\" \"$@\"\n") == Names{"/a/c"});
  CHECK(named_prefixes("# x\nprefix=/a/c\nexec_prefix=${prefix}\n") == Names{"/a/c"});
  CHECK(named_prefixes("#!/bin/sh\n'''exec' \"$0\" \"$@\" #'''\n").empty()); // the end inside of the beginning
  CHECK(named_prefixes("#!/usr/bin/env python\n").empty());
  CHECK(named_prefixes("#!/usr/bin/perl\n").empty());
  CHECK(named_prefixes("prefix=/usr\n").empty());
  CHECK(named_prefixes("#!/../../bin/python\n").empty());
}

TEST_CASE("requirement 9: text without a record, in any encoding", "[prefix]") {
  CHECK(guessed_mode("") == FileMode::text);
  CHECK(guessed_mode("/a/b\n") == FileMode::text);
  for (const auto& [width, big] : {std::pair(2, false), {2, true}, {4, false}, {4, true}}) {
    CHECK(guessed_mode(wide("x = /a/b\n", static_cast<std::size_t>(width), big)) == FileMode::text);
    CHECK(guessed_mode(wide("x = /a/b\0y\n"s, static_cast<std::size_t>(width), big)) == FileMode::binary);
  }
  CHECK(guessed_mode("\x7f"
                     "ELF\2\1\1\0/a/b\0\0\0\0"s) == FileMode::binary);
  CHECK(guessed_mode("\1\2\3\0"s) == FileMode::binary);
}

TEST_CASE("what cannot be a prefix", "[prefix]") {
  CHECK(check_prefix("/data/llm"));
  CHECK(check_prefix("/data/with space"));
  for (const auto* prefix :
       {"", "/", "/x", "relative/x", "/a/../b", "/a/b/", "/a/\"b", "/a/$b", "/a/`b`", "/a/b\nc", "/a/\\b"})
    CHECK_FALSE(check_prefix(prefix));
}

TEST_CASE("requirement 11: the source of a compiled file", "[compiled]") {
  CHECK(source_of("lib/x/__pycache__/a.cpython-311.pyc") == "lib/x/a.py");
  CHECK(source_of("lib/x/__pycache__/a.cpython-311.opt-2.pyc") == "lib/x/a.py");
  CHECK(source_of("__pycache__/a.cpython-311.pyc") == "a.py");
  CHECK(source_of("lib/x/a.pyc").empty());
  CHECK(source_of("a.pyc").empty());
}

TEST_CASE("requirement 11: when Python would compile again", "[compiled]") {
  const auto header = "\xa7\x0d\x0d\x0a"s + "\0\0\0\0"s + "\x01\x02\0\0"s + "\x05\0\0\0"s;
  CHECK_FALSE(is_stale(header, 0x201, 5));
  CHECK(is_stale(header, 0x202, 5));
  CHECK(is_stale(header, 0x201, 6));
  CHECK_FALSE(is_stale(header, 0x100000201, 5)); // 32 bits of the time are kept
  CHECK(is_stale(header.substr(0, 15), 0x201, 5));
  auto hashed = header;
  hashed[4] = 1; // unchecked-hash: valid at any time
  CHECK_FALSE(is_stale(hashed, 7, 7));
}
