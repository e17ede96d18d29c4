#pragma once
#include <cstddef>
#include <functional>

namespace sharefs {

/// Calls `work` for each number below `count`, in at most `threads` threads; the calling thread is the first of them.
/// If the system gives fewer threads, those that exist do all the work. If `work` throws, the other threads end after
/// their present call, and the exception is thrown again here.
void in_parallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

} // namespace sharefs
