#pragma once
#include <string>
#include <vector>

namespace sharefs::sys {

/// As execve(2) takes them, with the null at the end. They point into `words`.
inline std::vector<char*> exec_words(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (auto& word : words)
    result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

} // namespace sharefs::sys
