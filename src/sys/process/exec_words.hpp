#pragma once
#include <string>
#include <vector>

namespace sharefs::sys {

/// Returns the words as execve(2) expects them, with a null pointer at the end. The pointers point into `words`.
inline std::vector<char*> exec_words(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (auto& word : words)
    result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

} // namespace sharefs::sys
