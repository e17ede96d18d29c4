#pragma once
// Private to tree: small files on NFS made and read by calls of our own (version 3), many at a time. The kernel's
// client makes one name in a directory at a time, asks before and after it reads a file, and waits for each round trip.
#include "sys/nfs/net.hpp"
#include "sys/nfs/nfs3.hpp"
#include "sys/nfs/rpc_pipeline.hpp"
#include "sys/process/pulse.hpp"

#include <memory>

namespace sharefs::tree {

/// Where the kernel's NFS client goes for a mount.
struct NfsRoute {
  std::string address; ///< a numeric one
  std::uint16_t port = 0;
  std::size_t size = 0; ///< bytes that the server takes and gives in one call
};
/// Of a mount with TCP and AUTH_SYS; else why there is none. Whether the server of a mount with version 4 offers 3 as
/// well is seen when it is asked.
tl::expected<NfsRoute, std::string> nfs_route(const std::string& fs_type, const std::string& super_options);

/// The server's handle for a file in what name_to_handle_at(2) gives for it on NFS (fs/nfs/export.c of the kernel):
/// the very one that the mount uses. Nothing where the kernel has it otherwise, or it is another file than `status`.
std::optional<std::string> server_handle(std::string_view kernel_handle, const struct stat& status);

class NfsFiles {
 public:
  struct File {
    std::string name;
    std::string content;
    mode_t mode = 0;
    timespec accessed{}, modified{};
    std::uint32_t size = 0;              ///< of what was written, or is to be read
    std::string handle = {};             ///< once it is there
    bool made = false;                   ///< there is, or may be, a file of this name that is ours
    bool done = false;                   ///< the server has done all that was asked for
    bool read = false;                   ///< `content` is what read() found
    sys::Nfs3Attributes attributes = {}; ///< as the server or the mount said last
  };

  /// Of a server that is connected already.
  explicit NfsFiles(std::unique_ptr<sys::RpcPipeline> pipeline) : m_pipeline(std::move(pipeline)) {}
  /// Connects to the server of the mount that `directory` lies on, as who we are, and only if it has the same directory
  /// by the handle: nothing is written before that. What is in the way is said in words. `reserved`: sockets of ports
  /// below 1024, which most exports ask for.
  static tl::expected<std::unique_ptr<NfsFiles>, std::string> open(int directory, sys::ReservedSockets reserved,
                                                                   const sys::Pulse& pulse);

  /// Of `name` in `directory`, or of the directory itself (""), with its `status`. "" where the kernel does not tell,
  /// or something else is mounted there.
  [[nodiscard]] std::string handle_of(int directory, const char* name, const struct stat& status) const;
  /// Makes and writes them, to the server's disk; File::done where that was done. A file of that name is left.
  void make(std::string_view directory, std::span<File*> files);
  /// Gives them their times.
  void give_times(std::span<File*> files);
  /// What the server has of them now, whatever this host remembers: File::content, and File::read where it came whole,
  /// of a file that still is as File::attributes says. `acls`: only of files without an ACL.
  void read(std::span<File*> files, bool acls = false);

  [[nodiscard]] bool works() const { return m_pipeline->works(); }
  [[nodiscard]] std::size_t most() const { return m_most; } ///< bytes of a file
  [[nodiscard]] const std::string& server() const { return m_server; }
  [[nodiscard]] std::chrono::microseconds round_trip() const { return m_round_trip; }

 private:
  struct Call : sys::RpcPipeline::Call {
    sys::Answer<sys::Nfs3Reply> (*read)(std::string_view result);
  };
  std::vector<sys::Answer<sys::Nfs3Reply>> ask(const std::vector<Call>& calls);
  tl::expected<void, std::string> prove(int directory);

  std::unique_ptr<sys::RpcPipeline> m_pipeline;
  std::string m_server;
  std::size_t m_most = 0;
  int m_mount = -1; ///< its number
  std::chrono::microseconds m_round_trip{0};
};

} // namespace sharefs::tree
