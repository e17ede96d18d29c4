#pragma once
// The one place where sharefs takes the ids of another user (tests/layers fails on a second one).
#include "sys/process/user.hpp"

#include <string>
#include <vector>

namespace sharefs::sys {

/// Makes a forked child the user `as`, for good: groups, ids, capabilities and session keyring. From then on only root
/// can trace this process or read its memory, which still holds root's data. execve(2) of a program ends this
/// protection together with the memory. `kept`: capabilities (bits of capabilities(7)) that stay in effect. Returns 0
/// or errno. A process that is that user already needs no privilege, and nothing is changed.
int become(const User& as, unsigned kept = 0);

/// Returns the environment of a program that works for `user`, as NAME=value: the user's name, home and shell, the
/// system's PATH, and of our own variables those for terminal, language, time zone and network proxies.
std::vector<std::string> environment_of(const User& user);

} // namespace sharefs::sys
