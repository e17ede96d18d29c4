#pragma once
// Pieces of the file that `sharefs init` writes: lists, comments, and entries that are only taken over if config::parse
// takes them. Pure.
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::cli {

/// Every line behind `margin` and `# `.
std::string commented(std::string_view block, std::string_view margin);
/// `KEY: [a, b]`, or one element per line where that is too long.
std::string list(std::string_view margin, std::string_view key, const std::vector<std::string>& values);
/// The first names, and how many more there are.
std::string few(std::vector<std::string> names);
/// Why config::parse refuses these sections, without the place; empty: it takes them.
std::string refusal(const std::string& sections);
/// The entry; or in comments, with the reason, if `sections`, which hold it, are refused.
std::string usable(const std::string& sections, const std::string& entry, std::string_view margin);

} // namespace sharefs::cli
