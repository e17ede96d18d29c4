#pragma once
// Names that nobody can guess, and so nobody can make first.
#include <cstddef>
#include <string>
#include <string_view>

namespace sharefs {

/// `count` of [a-z0-9], each worth 5 bits. From getrandom(2).
std::string random_letters(std::size_t count);
/// Such letters, and at least one of them.
bool are_random_letters(std::string_view text);

} // namespace sharefs
