#pragma once
// The order in which homes are asked, when some may lie on a server that does not answer.
#include "sys/mounts/mount_table.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace sharefs::conda {

/// Homes on one network mount hang together: one of them is asked first, and if it does not answer the others are not
/// asked at all. Each unanswered question costs its deadline and may leave a process that hangs in the kernel.
/// `ask(index)` is called in parallel and returns false if there was no answer in time; `skip(index, asked)` instead of
/// it for those on the mount of `asked`. Each of `paths` (absolute, normalized, or empty for one that needs no mount)
/// gets exactly one of the two.
void ask_homes(const sys::MountTable& mounts, const std::vector<std::string>& paths,
               const std::function<bool(std::size_t index)>& ask,
               const std::function<void(std::size_t index, std::size_t asked)>& skip);

} // namespace sharefs::conda
