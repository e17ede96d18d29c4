#pragma once
// What reading one launch may cost: its words, and the texts, files and parsers that they lead to. What would cost more
// is not understood, and its command stays as it is.
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace sharefs::cachefix {

/// What is left of each. One of them for a whole launch, handed on by reference.
struct Budget {
  std::size_t words = 2'000'000;  ///< of command lines, each level of launchers anew
  std::size_t bytes = 64U << 20U; ///< of texts, their syntax trees, and the values of their variables
  std::size_t files = 10'000;     ///< and directories that are read or looked at
  std::size_t parsers = 200;      ///< processes that read a text
  std::size_t steps = 4'000'000;  ///< commands, nodes of syntax trees, keys of files
  std::size_t depth = 64;         ///< launchers behind launchers, texts inside of texts, files that name files
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string spent = {}; ///< why reading has ended: "it leads to too many files"; empty: it goes on

  // What one thing may be; beyond it that thing alone is not read.
  static constexpr std::size_t k_text = 4U << 20U;         ///< bytes of a file
  static constexpr std::size_t k_tree = 24U << 20U;        ///< bytes of a syntax tree
  static constexpr int k_nested_shells = 4;                ///< shell text inside of shell text
  static constexpr int k_nested_syntax = 200;              ///< levels of a syntax tree, or of a JSON file
  static constexpr int k_nested_keys = 32;                 ///< levels of a YAML file in which caches are looked for
  static constexpr std::chrono::milliseconds k_look{1500}; ///< for one answer of a share

  /// False: there is not so much left, or the time is over; then nothing is any more.
  bool take(std::size_t Budget::* what, std::size_t amount = 1);
  [[nodiscard]] bool is_spent() const { return !spent.empty(); }
  /// Until the end, at most `most`.
  [[nodiscard]] std::chrono::milliseconds time(std::chrono::milliseconds most) const;
};

/// One level deeper for as long as it lives.
class Deeper {
 public:
  explicit Deeper(Budget& budget) : m_budget(budget), m_taken(budget.take(&Budget::depth)) {}
  ~Deeper() { m_budget.depth += m_taken ? 1 : 0; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  explicit operator bool() const { return m_taken; }

 private:
  Budget& m_budget;
  bool m_taken;
};

/// How deep the brackets of a text are, without reading it: what is too deep would exhaust the stack or the patience of
/// whoever walks it. `strings`: those inside of "..." do not count.
int nesting_of(std::string_view text, bool strings);

} // namespace sharefs::cachefix
