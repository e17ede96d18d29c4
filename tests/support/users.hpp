#pragma once
#include "sys/identity/user.hpp"

namespace sharefs::test {

/// Who may do nothing that is not allowed to all.
inline sys::User nobody() {
  return {"nobody", 65534, 65534, {65534}, "/nonexistent"};
}

} // namespace sharefs::test
