#include "conda/compiled.hpp"

#include <cstddef>

namespace sharefs::conda {

namespace {

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << 8U * i;
  return number;
}

} // namespace

bool is_compiled(std::string_view path) {
  return path.ends_with(".pyc");
}

std::string source_of(std::string_view pyc) {
  constexpr std::string_view k_directory = "__pycache__/";
  const auto slash = pyc.rfind('/');
  if (slash == std::string_view::npos || !pyc.substr(0, slash + 1).ends_with(k_directory))
    return {};
  const auto name = pyc.substr(slash + 1);
  const auto above = pyc.substr(0, slash + 1 - k_directory.size());
  return std::string(above) + std::string(name.substr(0, name.find('.'))) + ".py";
}

bool is_stale(std::string_view header, std::int64_t mtime, std::uint64_t size) {
  if (header.size() < 16 || little_endian(header, 4) != 0)
    return header.size() < 16;
  return little_endian(header, 8) != static_cast<std::uint32_t>(mtime) ||
         little_endian(header, 12) != static_cast<std::uint32_t>(size);
}

} // namespace sharefs::conda
