// Formats exports as text of exports(5).
#include "base/text.hpp"
#include "exports/parse.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

/// Escapes the text so that exportfs reads exactly these bytes. It decodes `\ooo` repeatedly, so digits after a
/// backslash are escaped, too. `#` begins a comment only at the start of a word, but people misread it elsewhere.
std::string escape(std::string_view text) {
  std::string out;
  int digits = 0; // number of further octal digits that could be read as a part of an escape
  for (const char byte : text) {
    const bool plain = static_cast<unsigned char>(byte) > ' ' && byte != '\x7f' && byte != '"' && byte != '#' &&
                       byte != '\\' && (digits == 0 || !is_octal_digit(byte));
    out += plain ? std::string(1, byte) : fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
    digits = byte == '\\' ? 3 : std::max(0, digits - 1);
  }
  return out;
}

std::string list_of(const std::vector<std::string>& options) {
  std::string list;
  for (const auto& option : options)
    list += (list.empty() ? "" : ",") + escape(option);
  return list;
}

std::string word_of(const Export& client) {
  return escape(client.client) + "(" + list_of(client.options) + ")";
}

} // namespace

std::string unwritable(const Export& entry) {
  const auto word = word_of(entry);
  const auto read = parse(format({entry}), "");
  const auto is_same = [&](const Export& one) {
    return one.directory == entry.directory && one.client == entry.client && one.options == entry.options;
  };
  if (read.complete && read.exports.size() == 1 && is_same(read.exports.front()))
    return "";
  const auto why = read.diagnoses.empty() ? "it would be read otherwise" : read.diagnoses.front().message;
  return fmt::format("exports(5) cannot express `{} {}`: {}", entry.directory, word, why.substr(0, why.find(';')));
}

std::string format(const std::vector<Export>& exports) {
  std::string text;
  for (std::span<const Export> rest = exports; !rest.empty(); rest = rest.subspan(first_line(rest).size())) {
    text += escape(rest.front().directory);
    for (const auto& client : first_line(rest))
      text += " " + word_of(client);
    text += "\n";
  }
  return text;
}

} // namespace sharefs::exports
