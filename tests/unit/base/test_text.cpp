#include "base/text.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using Strings = std::vector<std::string>;

TEST_CASE("split keeps empty parts, split_words does not", "[text]") {
  CHECK(split("a,,b", ',') == Strings{"a", "", "b"});
  CHECK(split("", ',') == Strings{""});
  CHECK(split_words("  a \t b ") == Strings{"a", "b"});
  CHECK(split_words(" ").empty());
  CHECK(split_lines("a\r\n\nb\n") == Strings{"a", "", "b"});
  CHECK(split_lines("").empty());
  CHECK(split_lines("\n") == Strings{""});
}

TEST_CASE("octal escapes of mountinfo, fstab and exports", "[text]") {
  CHECK(decode_octal(R"(sp\040ace\011\134)") == "sp ace\t\\");
  CHECK(decode_octal(R"(\04 \999 \400 end\)") == R"(\04 \999 \400 end\)");
  CHECK(decode_octal(R"(\303\244)") == "ä");
  CHECK(decode_octal(R"(plain\134040)") == R"(plain\040)");
}

TEST_CASE("edit distance", "[text]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("mount", "mount") == 0);
  CHECK(edit_distance("moutn", "mount") == 1); // a transposition is one edit
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("abc", "xyzabc", 2) == 3); // over the limit
  CHECK(edit_distance("aaaaaaaaaa", "bbbbbbbbbb", 4) == 5);
}

TEST_CASE("did you mean", "[text]") {
  const Strings keys{"clients", "options", "path", "access"};
  CHECK(did_you_mean("client", keys) == "clients");
  CHECK(did_you_mean("optoins", keys) == "options");
  CHECK_FALSE(did_you_mean("zebra", keys));
  CHECK_FALSE(did_you_mean("x", keys));
  CHECK(did_you_mean_hint("pth", keys) == "did you mean `path`?");
  CHECK(did_you_mean_hint("zebra", keys).empty());
  CHECK(name_hint("pth", keys, "the keys are") == "did you mean `path`?");
  CHECK(name_hint("zebra", keys, "the keys are") == "the keys are clients, options, path, access");
  CHECK(name_hint("zebra", {}, "the keys are").empty());
  CHECK(name_hint("zebra", {"aa", "ab", "ac", "ad", "ae", "af", "ag", "ah", "ai", "aj", "ak", "al"}, "the keys are") ==
        "the keys are aa, ab, ac, ad, ae, af, ag, ah, ai, aj and 2 more");
}

TEST_CASE("UTF-8", "[text]") {
  CHECK(is_utf8("plain ä € 😀"));
  for (const std::string bad :
       {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x8f\xbf\xbf"}) {
    CAPTURE(bad.size());
    CHECK_FALSE(is_utf8(bad));
    CHECK(is_utf8(to_utf8(bad)));
  }
  CHECK(to_utf8("a\xff"
                "b") == "a\xef\xbf\xbd"
                        "b");
}

TEST_CASE("base64 (RFC 4648, section 10)", "[text]") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(decode_base64("Zm8=") == "fo");
  CHECK(decode_base64("Zm8") == "fo");
  CHECK(decode_base64("Zm9vYmFy") == "foobar");
  CHECK(decode_base64("+/+/") == "\xfb\xff\xbf");
  CHECK_FALSE(decode_base64("Zm9vY"));
  CHECK_FALSE(decode_base64("Zm9_"));
}

TEST_CASE("sizes", "[units]") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(1048575) == "1.0 MiB");
  CHECK(format_bytes(10ULL << 30U) == "10 GiB");
  CHECK(parse_size("64K") == 65536);
  CHECK(parse_size("1.5TiB") == 1649267441664ULL);
  CHECK(parse_size("4096") == 4096);
  CHECK(parse_size("2 GB") == 2ULL << 30U);
  for (const auto* bad : {"", "K", "1X", "-1", "1e3", "99999999999E", "5iB", "5KK"})
    CHECK_FALSE(parse_size(bad));
}

TEST_CASE("durations", "[units]") {
  CHECK(parse_duration("5") == 5000);
  CHECK(parse_duration("5s") == 5000);
  CHECK(parse_duration("500ms") == 500);
  CHECK(parse_duration("1.5min") == 90000);
  CHECK(parse_duration("1h") == 3600000);
  for (const auto* bad : {"", "s", "5 parsecs", "-1", "1..2", "1e9h"})
    CHECK_FALSE(parse_duration(bad));
  CHECK(format_duration(87) == "87 us");
  CHECK(format_duration(1234) == "1.2 ms");
  CHECK(format_duration(3'400'000) == "3.4 s");
  CHECK(format_duration(125'000'000) == "2 min 5 s");
  CHECK(format_duration(7'260'000'000) == "2 h 1 min");
}

TEST_CASE("modes", "[units]") {
  CHECK(parse_mode("2775") == 02775U);
  CHECK(parse_mode("0755") == 0755U);
  for (const auto* bad : {"", "8", "17777", "rwx", "755 "})
    CHECK_FALSE(parse_mode(bad));
  CHECK(format_mode(02775) == "2775");
  CHECK(format_mode(0644) == "0644");
}

TEST_CASE("counts", "[text]") {
  CHECK(count_of(1, "step") == "1 step");
  CHECK(count_of(0, "step") == "0 steps");
}

TEST_CASE("variables in a text", "[text]") {
  const auto expanded = [](std::string_view text) {
    return expand_variables(text,
                            [](std::string_view name, std::size_t at) -> std::optional<std::string> {
                              return name == "NONE" ? std::nullopt
                                                    : std::optional("<" + std::string(name) + std::to_string(at) + ">");
                            })
        .value_or("no");
  };
  CHECK(expanded("/plain") == "/plain");
  CHECK(expanded("$A") == "<A0>");
  CHECK(expanded("${A}/b/$C_1-x") == "<A0>/b/<C_17>-x");
  for (const auto* bad : {"$", "a$", "$1", "${}", "${A", "${A:-x}", "$(x)", "$$", "$NONE", "/x/${NONE}"})
    CHECK(expanded(bad) == "no");
}
