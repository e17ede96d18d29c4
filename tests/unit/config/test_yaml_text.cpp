#include "config/yaml_text.hpp"
#include "support/catch.hpp"

#include <vector>

using namespace sharefs::config;

TEST_CASE("plain_meaning: what other readers of YAML take for something else", "[yaml_text]") {
  struct Row {
    std::string meaning;
    std::vector<std::string> texts;
  };
  const std::vector<Row> rows{
      {"null", {"", "~", "null", "NULL"}},
      {"a boolean", {"yes", "No", "ON", "off", "true", "False"}},
      {"a number",
       {"0", "1", "-1", "+1", "0755", "1_000", "0x1F", "0o17", "0b101", "3.10", ".5", "5.", "1e3", "1.5E-3", ".inf",
        "-.INF", ".nan"}},
  };
  for (const auto& [meaning, texts] : rows)
    for (const auto& text : texts) {
      INFO(text);
      CHECK(plain_meaning(text) == meaning);
    }
  for (const std::string text : {"yess", "y", "192.168.16.1", "1a", "0x", "0xg", "1.2.3", "e5", "_1", ".", "-", "+",
                                 "1e", "10.0.0.0/8", "storage1", "py3.10", "1-2"}) {
    INFO(text);
    CHECK_FALSE(plain_meaning(text));
  }
}

TEST_CASE("yaml_scalar quotes what needs it", "[yaml_text]") {
  CHECK(yaml_scalar("storage1") == "storage1");
  CHECK(yaml_scalar("/data/share_1.2") == "/data/share_1.2");
  CHECK(yaml_scalar("192.168.16.11/22") == "192.168.16.11/22");
  CHECK(yaml_scalar("2775") == "\"2775\"");
  CHECK(yaml_scalar("") == "\"\"");
  CHECK(yaml_scalar("no") == "\"no\"");
  CHECK(yaml_scalar("*") == "\"*\"");
  CHECK(yaml_scalar("@nodes") == "\"@nodes\"");
  CHECK(yaml_scalar("a: b") == "\"a: b\"");
  CHECK(yaml_scalar("a\nb\t") == "\"a\\x0ab\\x09\"");
  CHECK(yaml_scalar("--cache_dir") == "\"--cache_dir\"");
  CHECK(yaml_scalar("a\"b\\c") == "\"a\\\"b\\\\c\"");
  CHECK(yaml_scalar("größe") == "\"größe\"");
  // Readers of YAML 1.1 take these for a date, and for numbers to the base 60.
  for (const std::string text : {"2024-01-01", "2024-01-01T02:03:04Z", "190:20:30", "2001:10:0:0:0:0:0:1"})
    CHECK(yaml_scalar(text) == yaml_quoted(text));
  for (const std::string text : {"2024-01-011", "2024-01", "12024-01-01", "2024-01-xx", "2024-1-1", "py-2024-01-01"})
    CHECK(yaml_scalar(text) == text);
}
