#pragma once
// Names that nobody can guess, so that nobody else can create a file of that name first.
#include <cstddef>
#include <string>
#include <string_view>

namespace sharefs {

/// Returns `count` of [a-z0-9], from getrandom(2); each letter is worth 5 bits.
std::string random_letters(std::size_t count);
/// True if `text` is not empty and consists of such letters.
bool are_random_letters(std::string_view text);

} // namespace sharefs
