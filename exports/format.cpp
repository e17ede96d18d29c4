// Formats exports as text of exports(5).
#include "base/text.hpp"
#include "exports/lexer.hpp"
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

/// True if exports(5) can express the option: exportfs skips blanks in front of an option and ends it at a comma, even
/// if they are escaped. `)` ends the list.
bool writable_option(const std::string& option) {
  return !option.empty() && option.front() != ' ' && option.front() != '\t' &&
         option.find_first_of(std::string_view(",\0)", 3)) == std::string::npos;
}

/// True if exportfs can read the word. An escape takes four bytes of its buffer until it is complete.
bool fits(const std::string& escaped, std::size_t limit) {
  Word word;
  return Lexer(escaped).next(limit, word) != Lexer::Got::too_long;
}

std::string word_of(const Export& client) {
  return escape(client.client) + "(" + list_of(client.options) + ")";
}

std::string unwritable_client(const Export& client) {
  if (client.client.empty())
    return "a client cannot be empty";
  if (client.client.find('(') != std::string::npos)
    return fmt::format("the client `{}` holds a `(`: options are given apart from the clients", client.client);
  if (client.client.starts_with('-'))
    return fmt::format("the client `{}` begins with `-`, which begins options", client.client);
  if (client.client.find('\0') != std::string::npos)
    return "a client cannot hold a NUL byte";
  for (const auto& option : client.options)
    if (!writable_option(option))
      return fmt::format("the option `{}` cannot be written in exports(5)", option);
  if (!fits(word_of(client), k_client_limit))
    return fmt::format("the client `{}` and its options take {} bytes or more", client.client, k_client_limit);
  return "";
}

} // namespace

std::string unwritable(const Export& entry) {
  if (entry.directory.empty() || entry.directory.find('\0') != std::string::npos)
    return "the directory is empty or holds a NUL byte";
  if (!fits(escape(entry.directory), k_path_limit))
    return fmt::format("the directory takes {} bytes or more", k_path_limit);
  return unwritable_client(entry);
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
