#pragma once
#include <cstddef>
#include <functional>

namespace sharefs {

/// Calls `work` for each number below `count`, by at most so many threads, of which this one is the first. Where no
/// more threads are to be had, those that there are do all of it. An exception of `work` ends the others after what
/// they are at, and comes out here.
void in_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

} // namespace sharefs
