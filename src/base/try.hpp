#pragma once
// These macros make the error of a call the error of the calling function. Both functions return a Result.
//   TRY(f());                      // returns the error of f(), if it has one
//   TRY_ASSIGN(const auto x, f()); // the same; else x is its value: a new variable, or an existing one
// TRY is one statement; TRY_ASSIGN is several, and therefore cannot be the body of an `if` without braces.
#include "base/result.hpp"

#include <utility>

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot stand in parentheses.
#define SHAREFS_TRY(result, ...)                                                                                       \
  do {                                                                                                                 \
    if (auto&& result = (__VA_ARGS__); !result)                                                                        \
      return ::sharefs::fail(std::forward<decltype(result)>(result).error());                                          \
  } while (false)
#define SHAREFS_TRY_ASSIGN(result, value, ...)                                                                         \
  auto&& result = (__VA_ARGS__);                                                                                       \
  if (!result)                                                                                                         \
    return ::sharefs::fail(std::forward<decltype(result)>(result).error());                                            \
  value = *std::forward<decltype(result)>(result)
// Each result gets a name of its own, because an expression may hold a lambda that uses TRY, too.
#define SHAREFS_TRY_NAMED(macro, number, ...) macro(tried_##number, __VA_ARGS__)
#define SHAREFS_TRY_NUMBERED(macro, number, ...) SHAREFS_TRY_NAMED(macro, number, __VA_ARGS__)

#define TRY(...) SHAREFS_TRY_NUMBERED(SHAREFS_TRY, __COUNTER__, __VA_ARGS__)
#define TRY_ASSIGN(value, ...) SHAREFS_TRY_NUMBERED(SHAREFS_TRY_ASSIGN, __COUNTER__, value, __VA_ARGS__)
// NOLINTEND(bugprone-macro-parentheses)
