#pragma once
// The procedures of NFS version 3 (RFC 1813) by which a file is written and read, and one of NFSACL, its companion of
// Linux and Solaris without an RFC: arguments and replies as bytes. What a server sends is checked as in rpc.hpp.
#include "sys/nfs/rpc.hpp"

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace sharefs::sys {

inline constexpr RpcProcedure k_nfs3_getattr{k_program_nfs, 3, 1}, k_nfs3_setattr{k_program_nfs, 3, 2},
    k_nfs3_read{k_program_nfs, 3, 6}, k_nfs3_write{k_program_nfs, 3, 7}, k_nfs3_create{k_program_nfs, 3, 8};
inline constexpr RpcProcedure k_nfs3_getacl{100227, 3, 1};
inline constexpr std::size_t k_nfs3_most_bytes = 256U << 10U; ///< that we write or read in one call

inline constexpr std::uint32_t k_nfs3_ok = 0, k_nfs3_not_owner = 1, k_nfs3_stale = 70, k_nfs3_jukebox = 10008;

/// fattr3 as lstat(2) has it: st_mode with the type, st_ino the fileid; st_dev, st_rdev and the access time are left
/// out.
using Nfs3Attributes = struct stat;

/// Of each of these procedures, as far as it has them.
struct Nfs3Reply {
  std::uint32_t status = 0;                      ///< nfsstat3
  std::string handle = {};                       ///< of what was made
  std::optional<Nfs3Attributes> attributes = {}; ///< afterwards; a server may leave them out
  std::uint32_t count = 0;                       ///< bytes that were written
  std::string content = {};                      ///< that was read
  bool synced = false;                           ///< they are on the server's disk
  bool has_acl = false;                          ///< that says more than the mode, or it is not known
};

std::string nfs3_getattr(std::string_view handle);
/// A new file (GUARDED: none that is there is taken) of this mode.
std::string nfs3_create(std::string_view directory, std::string_view name, mode_t mode);
/// To be on the disk when the reply comes.
std::string nfs3_write(std::string_view handle, std::uint64_t offset, std::string_view bytes);
/// No more than k_nfs3_most_bytes; fewer come at the end of the file, or if the server likes.
std::string nfs3_read(std::string_view handle, std::uint64_t offset, std::uint32_t count);
/// The ACL that gives access to it.
std::string nfs3_getacl(std::string_view handle);
/// The times of reading and change. Only those that is_nfs3_time().
std::string nfs3_set_times(std::string_view handle, const timespec& accessed, const timespec& modified);
/// Does the protocol have such a time? (1970 to 2106)
bool is_nfs3_time(const timespec& time);

Answer<Nfs3Reply> read_nfs3_getattr(std::string_view result);
Answer<Nfs3Reply> read_nfs3_create(std::string_view result);
Answer<Nfs3Reply> read_nfs3_write(std::string_view result);
Answer<Nfs3Reply> read_nfs3_read(std::string_view result);
Answer<Nfs3Reply> read_nfs3_getacl(std::string_view result);
Answer<Nfs3Reply> read_nfs3_setattr(std::string_view result);

} // namespace sharefs::sys
