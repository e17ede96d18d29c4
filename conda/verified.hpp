#pragma once
// STORE/.generations/ENV/verified: which generation was compared with conda's records, file by file, and found good,
// and when. Pure.
#include "conda/generation.hpp"

namespace sharefs::conda {

std::string verified_path(const std::string& store, const std::string& environment);
/// One line: the generation's number, when it was made by its record, `now`, and by what the tree is known again
/// (tree::survey() with inodes; empty: that was not looked at).
std::string format_verified(const Generation& generation, std::int64_t now, const std::string& fingerprint = {});
/// When this generation was found good, seconds since 1970; 0: the text says nothing of it.
std::int64_t verified_at(std::string_view text, const Generation& generation);
/// By what it was known then; empty: the text says nothing of that.
std::string verified_fingerprint(std::string_view text, const Generation& generation);

} // namespace sharefs::conda
