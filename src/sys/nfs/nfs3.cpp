#include "sys/nfs/nfs3.hpp"

#include <limits>
#include <map>

namespace sharefs::sys {
namespace {

constexpr std::uint32_t k_guarded = 1, k_file_sync = 2, k_client_time = 2, k_no = 0, k_yes = 1;
/// Of an ACL, as fs/nfs_common/nfsacl.c of the kernel has it: the list that is asked for, and the tags of its entries.
constexpr std::uint32_t k_access = 1, k_owner = 1, k_group = 4, k_mask = 16, k_others = 32;
constexpr std::int64_t k_last_second = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t k_last_nanosecond = 999'999'999;

mode_t type_of(std::uint32_t ftype3) {
  switch (ftype3) {
  case 1:
    return S_IFREG;
  case 2:
    return S_IFDIR;
  case 3:
    return S_IFBLK;
  case 4:
    return S_IFCHR;
  case 5:
    return S_IFLNK;
  case 6:
    return S_IFSOCK;
  case 7:
    return S_IFIFO;
  default:
    return 0;
  }
}

timespec read_time(XdrReader& reader) {
  const auto seconds = reader.word(), nanoseconds = reader.word();
  if (nanoseconds > k_last_nanosecond)
    reader.fail();
  return {static_cast<time_t>(seconds), static_cast<long>(nanoseconds)};
}

Nfs3Attributes read_fattr(XdrReader& reader) {
  Nfs3Attributes found{};
  const mode_t type = type_of(reader.word());
  if (type == 0)
    reader.fail();
  found.st_mode = type | (reader.word() & 07777U);
  found.st_nlink = reader.word();
  found.st_uid = reader.word();
  found.st_gid = reader.word();
  found.st_size = static_cast<off_t>(reader.wide());
  if (found.st_size < 0)
    reader.fail();
  reader.wide(); // bytes on the disk
  reader.wide(); // the numbers of a device
  reader.wide(); // fsid
  found.st_ino = reader.wide();
  read_time(reader); // of reading
  found.st_mtim = read_time(reader);
  found.st_ctim = read_time(reader);
  return found;
}

void read_attributes(XdrReader& reader, Nfs3Reply& reply) {
  if (reader.more())
    reply.attributes = read_fattr(reader);
}

/// wcc_data: what the file was before, which we do not use, and what it is.
void read_change(XdrReader& reader, Nfs3Reply& reply) {
  if (reader.more()) {
    reader.wide(); // size
    read_time(reader);
    read_time(reader);
  }
  read_attributes(reader, reply);
}

Answer<Nfs3Reply> finish(const XdrReader& reader, Nfs3Reply reply) {
  if (!reader.ok())
    return failure(Fault::unreadable);
  return reply;
}

} // namespace

bool is_nfs3_time(const timespec& time) {
  return time.tv_sec >= 0 && time.tv_sec <= k_last_second;
}

std::string nfs3_getattr(std::string_view handle) {
  return XdrWriter().text(handle).bytes();
}

std::string nfs3_create(std::string_view directory, std::string_view name, mode_t mode) {
  XdrWriter writer;
  writer.text(directory).text(name).word(k_guarded).word(k_yes).word(mode & 07777U);
  for (int i = 0; i < 5; ++i) // owner, group, size, times: as the server has them
    writer.word(k_no);
  return writer.bytes();
}

std::string nfs3_write(std::string_view handle, std::uint64_t offset, std::string_view bytes) {
  const auto count = static_cast<std::uint32_t>(bytes.size());
  return XdrWriter().text(handle).wide(offset).word(count).word(k_file_sync).text(bytes).bytes();
}

std::string nfs3_read(std::string_view handle, std::uint64_t offset, std::uint32_t count) {
  return XdrWriter().text(handle).wide(offset).word(count).bytes();
}

std::string nfs3_getacl(std::string_view handle) {
  return XdrWriter().text(handle).word(k_access).bytes();
}

std::string nfs3_set_times(std::string_view handle, const timespec& accessed, const timespec& modified) {
  XdrWriter writer;
  writer.text(handle);
  for (int i = 0; i < 4; ++i) // mode, owner, group, size: as they are
    writer.word(k_no);
  for (const auto& time : {accessed, modified})
    writer.word(k_client_time)
        .word(static_cast<std::uint32_t>(time.tv_sec))
        .word(static_cast<std::uint32_t>(time.tv_nsec));
  return writer.word(k_no).bytes(); // whatever its ctime is
}

Answer<Nfs3Reply> read_nfs3_getattr(std::string_view result) {
  XdrReader reader(result);
  Nfs3Reply reply{.status = reader.word()};
  if (reader.ok() && reply.status == k_nfs3_ok)
    reply.attributes = read_fattr(reader);
  return finish(reader, std::move(reply));
}

Answer<Nfs3Reply> read_nfs3_create(std::string_view result) {
  XdrReader reader(result);
  Nfs3Reply reply{.status = reader.word()};
  if (reader.ok() && reply.status == k_nfs3_ok) {
    if (reader.more())
      reply.handle = reader.text(k_max_handle);
    read_attributes(reader, reply);
  }
  Nfs3Reply directory;
  read_change(reader, directory);
  return finish(reader, std::move(reply));
}

Answer<Nfs3Reply> read_nfs3_write(std::string_view result) {
  XdrReader reader(result);
  Nfs3Reply reply{.status = reader.word()};
  read_change(reader, reply);
  if (reader.ok() && reply.status == k_nfs3_ok) {
    reply.count = reader.word();
    reply.synced = reader.word() == k_file_sync;
    reader.wide(); // which start of the server this is
  }
  return finish(reader, std::move(reply));
}

Answer<Nfs3Reply> read_nfs3_read(std::string_view result) {
  XdrReader reader(result);
  Nfs3Reply reply{.status = reader.word()};
  read_attributes(reader, reply);
  if (reader.ok() && reply.status == k_nfs3_ok) {
    const auto count = reader.word();
    reader.more(); // is it the end of the file?
    reply.content = reader.text(k_nfs3_most_bytes);
    if (reply.content.size() != count)
      reader.fail();
  }
  return finish(reader, std::move(reply));
}

/// Without an ACL a server gives what the mode says: three entries, and a mask that takes nothing away.
Answer<Nfs3Reply> read_nfs3_getacl(std::string_view result) {
  XdrReader reader(result);
  Nfs3Reply reply{.status = reader.word()};
  read_attributes(reader, reply);
  if (reader.ok() && reply.status == k_nfs3_ok) {
    reply.has_acl = (reader.word() & k_access) == 0;
    reader.word(); // how many entries there are
    std::map<std::uint32_t, std::uint32_t> rights;
    for (auto left = reader.word(); left > 0 && reader.ok(); --left) {
      const auto tag = reader.word();
      reader.word(); // whose
      reply.has_acl |= !rights.emplace(tag, reader.word()).second;
    }
    reply.has_acl |= rights.erase(k_owner) + rights.erase(k_others) != 2 || !rights.contains(k_group) ||
                     rights.emplace(k_mask, rights[k_group]).first->second != rights[k_group] || rights.size() != 2;
  }
  return finish(reader, std::move(reply));
}

Answer<Nfs3Reply> read_nfs3_setattr(std::string_view result) {
  XdrReader reader(result);
  Nfs3Reply reply{.status = reader.word()};
  read_change(reader, reply);
  return finish(reader, std::move(reply));
}

} // namespace sharefs::sys
