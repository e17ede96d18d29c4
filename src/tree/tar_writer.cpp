#include "tree/tar_writer.hpp"

#include "sys/process/child.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <span>

namespace sharefs::tree {

namespace {

constexpr std::size_t k_tar_block = 512;
constexpr std::size_t k_at_once = 256U << 10U; // most files of an environment are small

/// The header of a tar entry (pax(1), "ustar Interchange Format").
struct Header {
  std::array<char, 100> name{};
  std::array<char, 8> mode{}, uid{}, gid{};
  std::array<char, 12> size{}, mtime{};
  std::array<char, 8> checksum{};
  char type = '0';
  std::array<char, 100> link{};
  std::array<char, 8> magic{'u', 's', 't', 'a', 'r', '\0', '0', '0'};
  std::array<char, 247> rest{};
};
static_assert(sizeof(Header) == k_tar_block);

void put(std::span<char> field, std::string_view text) {
  ::memcpy(field.data(), text.data(), std::min(field.size(), text.size()));
}

/// Writes an octal number with a NUL at its end. A number that is too large becomes 0; add() writes it in a pax record.
void put_octal(std::span<char> field, std::uint64_t number) {
  const auto text = fmt::format("{:0{}o}", number, field.size() - 1);
  put(field, text.size() < field.size() ? text : std::string(field.size() - 1, '0'));
}

std::string_view bytes_of(Header& header) {
  header.checksum.fill(' ');
  const std::string_view bytes(reinterpret_cast<const char*>(&header), sizeof header);
  unsigned sum = 0;
  for (const char byte : bytes)
    sum += static_cast<unsigned char>(byte);
  put_octal(std::span(header.checksum).first(7), sum);
  return bytes;
}

/// Returns a pax record, "LENGTH KEY=VALUE\n", where LENGTH includes itself.
std::string record(std::string_view key, std::string_view value) {
  const auto rest = key.size() + value.size() + 3;
  auto length = rest + 1;
  while (std::to_string(length).size() + rest != length)
    ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

} // namespace

int TarWriter::write(std::string_view bytes) {
  m_written += bytes.size();
  if (m_waiting.size() + bytes.size() > k_at_once)
    if (const int error = flush(); error != 0)
      return error;
  if (bytes.size() > k_at_once)
    return sys::write_all(m_pipe, bytes) ? 0 : errno;
  m_waiting += bytes;
  return 0;
}

int TarWriter::flush() {
  const bool written = sys::write_all(m_pipe, m_waiting);
  m_waiting.clear();
  return written ? 0 : errno;
}

int TarWriter::pad() {
  const auto over = m_written % k_tar_block;
  return over == 0 ? 0 : write(std::string(k_tar_block - over, '\0'));
}

int TarWriter::add(const Entry& entry) {
  if (const int error = pad(); error != 0)
    return error;
  constexpr std::uint64_t k_largest_octal = 077777777777;
  const bool is_file = S_ISREG(entry.mode);
  Header header;
  put_octal(header.mode, entry.mode & 07777U);
  put_octal(header.uid, 0);
  put_octal(header.gid, 0);
  put_octal(header.mtime, entry.mtime < 0 ? 0 : static_cast<std::uint64_t>(entry.mtime));
  header.type = is_file ? '0' : S_ISDIR(entry.mode) ? '5' : '2';
  std::string more;
  if (entry.path.size() > header.name.size())
    more += record("path", entry.path);
  if (entry.target.size() > header.link.size())
    more += record("linkpath", entry.target);
  if (is_file && entry.size > k_largest_octal)
    more += record("size", std::to_string(entry.size));
  if (!more.empty()) {
    auto extended = header;
    extended.type = 'x';
    put(extended.name, "pax");
    put_octal(extended.size, more.size());
    for (const auto bytes : {bytes_of(extended), std::string_view(more)})
      if (const int error = write(bytes); error != 0)
        return error;
    if (const int error = pad(); error != 0)
      return error;
  }
  put(header.name, entry.path);
  put(header.link, entry.target);
  put_octal(header.size, is_file ? entry.size : 0);
  return write(bytes_of(header));
}

int TarWriter::end() {
  if (const int error = pad(); error != 0)
    return error;
  const int error = write(std::string(2 * k_tar_block, '\0'));
  return error == 0 ? flush() : error;
}

} // namespace sharefs::tree
