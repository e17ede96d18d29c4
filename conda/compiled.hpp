#pragma once
// Compiled Python (.pyc), which is never patched: it holds paths without an end, and it can be made again. Pure.
#include <cstdint>
#include <string>
#include <string_view>

namespace sharefs::conda {

bool is_compiled(std::string_view path);
/// `a/__pycache__/b.cpython-311.opt-1.pyc` -> `a/b.py`; empty for other places, where Python compares nothing.
std::string source_of(std::string_view pyc);
/// By the header of PEP 552, the first 16 bytes: another time (seconds) or size of the source. Those with a hash of it
/// are left to Python.
bool is_stale(std::string_view header, std::int64_t mtime, std::uint64_t size);

} // namespace sharefs::conda
