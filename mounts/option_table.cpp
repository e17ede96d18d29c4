// The table of options. Names and meanings are from nfs(5) and mount(8). Which options mountinfo shows is from
// nfs_show_mount_options() in fs/nfs/super.c.
#include "mounts/options.hpp"

#include <array>

namespace sharefs::mounts {

namespace {

constexpr std::string_view k_soft =
    "`soft`: a server that is away for longer than timeo and retrans allow gives programs an I/O error, and a program "
    "that does not check its writes leaves corrupt files without a word; `hard` waits instead";
constexpr std::string_view k_softerr =
    "`softerr`: as `soft`, with ETIMEDOUT: a program that does not check its writes leaves corrupt files";
constexpr std::string_view k_nolock = "`nolock`: on NFS 3 locks hold on this node only, so two nodes get the same "
                                      "lock: Hugging Face's cache locks protect "
                                      "nothing between nodes (NFS 4 ignores the option)";
constexpr std::string_view k_bg =
    "`bg`: mount returns 0 although nothing is mounted when the server is away, and retries for a week; sharefs probes "
    "the server first and does not start such a mount";
constexpr std::string_view k_local_lock =
    "`local_lock`: locks of that kind hold on this node only, other nodes get the same lock";
constexpr std::string_view k_noac =
    "`noac`: every attribute is asked from the server and every write waits for it: slow";
constexpr std::string_view k_nocto =
    "`nocto`: changes that other nodes make to a file may be seen late: only for content that does not change";
constexpr std::string_view k_udp =
    "`udp`: fragments of different packets can be mixed up on fast networks, which silently corrupts files (nfs(5))";
constexpr std::string_view k_softreval =
    "`softreval`: with the server away, paths are answered from the cache and may be wrong";
constexpr std::string_view k_sync = "`sync`: every write waits for the server: slow";

constexpr auto k_options = [] {
  using enum OptionUse;
  using enum Versions;
  return std::to_array<OptionSpec>({
      // name, key, value, use, versions, absent, consequence
      {"rw", "access", "rw", exact, any, "rw", {}},
      {"ro", "access", "ro", exact, any, "rw", {}},
      {"hard", "recovery", "hard", exact, any, "hard", {}},
      {"soft", "recovery", "soft", exact, any, "hard", k_soft},
      {"softerr", "recovery", "softerr", exact, any, "hard", k_softerr},
      {"softreval", "softreval", "yes", exact, any, "no", k_softreval},
      {"nosoftreval", "softreval", "no", exact, any, "no", {}},
      {"vers", "vers", {}, version, any, {}, {}},
      {"nfsvers", "vers", {}, version, any, {}, {}},
      {"v3", "vers", "3", version, any, {}, {}},
      {"v4", "vers", "4", version, any, {}, {}},
      {"v4.0", "vers", "4.0", version, any, {}, {}},
      {"v4.1", "vers", "4.1", version, any, {}, {}},
      {"v4.2", "vers", "4.2", version, any, {}, {}},
      {"minorversion", {}, {}, unseen, v4, {}, {}}, // mountinfo shows it as a part of vers
      {"proto", "proto", {}, transport, any, {}, {}},
      {"tcp", "proto", "tcp", transport, any, {}, {}},
      {"udp", "proto", "udp", transport, v3, {}, k_udp},
      {"rdma", "proto", "rdma", transport, any, {}, {}},
      {"port", {}, {}, exact, any, "2049", {}},
      {"timeo", {}, {}, exact, any, {}, {}},
      {"retrans", {}, {}, exact, any, {}, {}},
      {"rsize", {}, {}, at_most, any, {}, {}},
      {"wsize", {}, {}, at_most, any, {}, {}},
      {"bsize", {}, {}, unseen, any, {}, {}},
      {"namlen", {}, {}, unseen, v3, {}, {}},
      {"nconnect", {}, {}, first_mount, any, "1", {}},
      {"max_connect", {}, {}, first_mount, v4, "1", {}},
      {"trunkdiscovery", "trunkdiscovery", "yes", unseen, v4, {}, {}},
      {"notrunkdiscovery", "trunkdiscovery", "no", unseen, v4, {}, {}},
      {"ac", "ac", "yes", exact, any, "yes", {}},
      {"noac", "ac", "no", exact, any, "yes", k_noac},
      {"actimeo", {}, {}, exact, any, {}, {}},
      {"acregmin", {}, {}, exact, any, "3", {}},
      {"acregmax", {}, {}, exact, any, "60", {}},
      {"acdirmin", {}, {}, exact, any, "30", {}},
      {"acdirmax", {}, {}, exact, any, "60", {}},
      {"cto", "cto", "yes", exact, any, "yes", {}},
      {"nocto", "cto", "no", exact, any, "yes", k_nocto},
      {"lookupcache", {}, {}, exact, any, "all", {}},
      {"rdirplus", "rdirplus", "yes", exact, any, "yes", {}},
      {"nordirplus", "rdirplus", "no", exact, any, "yes", {}},
      {"acl", "acl", "yes", exact, v3, "yes", {}},
      {"noacl", "acl", "no", exact, v3, "yes", {}},
      {"lock", "lock", "yes", exact, v3, "yes", {}},
      {"nolock", "lock", "no", exact, v3, "yes", k_nolock},
      {"local_lock", {}, {}, exact, v3, "none", k_local_lock},
      {"sharecache", "sharecache", "yes", exact, any, "yes", {}},
      {"nosharecache", "sharecache", "no", exact, any, "yes", {}},
      {"resvport", "resvport", "yes", first_mount, any, "yes", {}},
      {"noresvport", "resvport", "no", first_mount, any, "yes", {}},
      {"fsc", "fsc", "yes", exact, any, "no", {}},
      {"nofsc", "fsc", "no", exact, any, "no", {}},
      {"migration", "migration", "yes", exact, v4, "no", {}},
      {"nomigration", "migration", "no", exact, v4, "no", {}},
      {"write", {}, {}, exact, any, "lazy", {}},
      {"sec", {}, {}, one_of, any, "sys", {}},
      {"xprtsec", {}, {}, exact, any, "none", {}},
      {"context", {}, {}, unseen, any, {}, {}}, // mountinfo shows it expanded and quoted
      {"clientaddr", {}, {}, exact, v4, {}, {}},
      {"addr", {}, {}, unseen, any, {}, {}},
      {"mountaddr", {}, {}, unseen, v3, {}, {}},
      {"mounthost", {}, {}, mount_nfs, v3, {}, {}},
      {"mountport", {}, {}, unseen, v3, {}, {}},
      {"mountproto", {}, {}, unseen, v3, {}, {}},
      {"mountvers", {}, {}, unseen, v3, {}, {}},
      {"bg", "ground", "bg", mount_nfs, any, {}, k_bg},
      {"fg", "ground", "fg", mount_nfs, any, {}, {}},
      {"retry", {}, {}, mount_nfs, any, {}, {}},
      {"sloppy", "sloppy", "yes", mount_nfs, any, {}, {}},
      {"intr", "intr", "yes", ignored, any, {}, {}},
      {"nointr", "intr", "no", ignored, any, {}, {}},
      {"posix", "posix", "yes", exact, v3, "no", {}},
      {"noposix", "posix", "no", exact, v3, "no", {}},
      // Options of mount(8):
      {"defaults", "defaults", "yes", fstab, any, {}, {}},
      {"sync", "sync", "sync", exact, any, "async", k_sync},
      {"async", "sync", "async", exact, any, "async", {}},
      {"dirsync", "dirsync", "yes", unseen, any, "no", {}},
      {"suid", "suid", "yes", exact, any, "yes", {}},
      {"nosuid", "suid", "no", exact, any, "yes", {}},
      {"dev", "dev", "yes", exact, any, "yes", {}},
      {"nodev", "dev", "no", exact, any, "yes", {}},
      {"exec", "exec", "yes", exact, any, "yes", {}},
      {"noexec", "exec", "no", exact, any, "yes", {}},
      {"atime", "atime", "default", mount_nfs, any, {}, {}}, // nfs(5): the server keeps the times, these have no effect
      {"noatime", "atime", "noatime", exact, any, "strictatime", {}},
      {"relatime", "atime", "relatime", exact, any, "strictatime", {}},
      {"norelatime", "atime", "default", mount_nfs, any, {}, {}},
      {"strictatime", "atime", "strictatime", exact, any, "strictatime", {}},
      {"nostrictatime", "atime", "default", mount_nfs, any, {}, {}},
      {"diratime", "diratime", "yes", exact, any, "yes", {}},
      {"nodiratime", "diratime", "no", exact, any, "yes", {}},
      {"auto", "auto", "yes", fstab, any, {}, {}},
      {"noauto", "auto", "no", fstab, any, {}, {}},
      {"_netdev", "_netdev", "yes", fstab, any, {}, {}},
      {"nofail", "nofail", "yes", fstab, any, {}, {}},
      {"user", "user", "yes", fstab, any, {}, {}},
      {"nouser", "user", "no", fstab, any, {}, {}},
      {"users", "users", "yes", fstab, any, {}, {}},
      {"owner", "owner", "yes", fstab, any, {}, {}},
      {"group", "group", "yes", fstab, any, {}, {}},
      {"comment", {}, {}, fstab, any, {}, {}},
      {"remount", "remount", "yes", refused, any, {}, {}},
      {"bind", "bind", "yes", refused, any, {}, {}},
      {"rbind", "bind", "rbind", refused, any, {}, {}},
      {"move", "move", "yes", refused, any, {}, {}},
      {"loop", "loop", "yes", refused, any, {}, {}},
  });
}();

} // namespace

std::span<const OptionSpec> option_table() {
  return k_options;
}

const OptionSpec* find_option(std::string_view word) {
  const auto name = word.substr(0, word.find('='));
  for (const auto& row : k_options)
    if (row.name == name)
      return &row;
  return nullptr;
}

} // namespace sharefs::mounts
