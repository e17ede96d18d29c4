#pragma once
// FUZZ_CHECK(condition): a property of a fuzz target; aborts with the condition's text, in every build type.
#include <cstdio>
#include <cstdlib>

#define FUZZ_CHECK(condition)                                                                                          \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      std::fprintf(stderr, "%s:%d: property does not hold: %s\n", __FILE__, __LINE__, #condition);                     \
      std::abort();                                                                                                    \
    }                                                                                                                  \
  } while (false)
