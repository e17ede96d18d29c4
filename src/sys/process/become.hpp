#pragma once
// The one place where sharefs takes the ids of another user (tests/layers fails on a second one).
#include "sys/process/user.hpp"

#include <string>
#include <vector>

namespace sharefs::sys {

/// Become `as` in a forked child, for good: groups, ids, capabilities and session keyring. Nobody but root can trace
/// this process or read its memory from then on, which still holds what was root's; execve(2) of a program ends that
/// together with the memory. `kept`: capabilities (bits of capabilities(7)) that stay in effect all the same. 0 or
/// errno. No privilege is needed, and nothing is changed, by who is that user already.
int become(const User& as, unsigned kept = 0);

/// The environment of a program that works for `user`: who the user is, the system's PATH, and of ours what
/// says how to talk to the person and which way the network is (NAME=value).
std::vector<std::string> environment_of(const User& user);

} // namespace sharefs::sys
