#pragma once
// Parts of the file that `sharefs init` writes: lists, comments, and entries that become comments if config::parse
// refuses them. Pure.
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::cli {

/// Puts `margin` and `# ` in front of every line.
std::string comment_out(std::string_view block, std::string_view margin);
/// Returns `KEY: [a, b]`, or one element per line if that is too long.
std::string list_text(std::string_view margin, std::string_view key, const std::vector<std::string>& values);
/// Joins the first names and the number of the others.
std::string join_few(std::vector<std::string> names);
/// Returns the reason why config::parse refuses these sections, without the place; "" if it accepts them.
std::string find_refusal(const std::string& sections);
/// Returns the entry; in comments, with the reason, if `sections`, which contain it, are refused.
std::string entry_or_comment(const std::string& sections, const std::string& entry, std::string_view margin);

} // namespace sharefs::cli
