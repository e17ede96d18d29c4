// The table itself. Sources: nfs(5) and mount(8) for names and meaning, fs/nfs/super.c (nfs_show_mount_options) for
// what mountinfo shows and leaves out.
#include "mounts/options.hpp"

#include <array>

namespace sharefs::mounts {

namespace {

constexpr std::string_view k_soft =
    "`soft`: a server that is away for longer than timeo and retrans allow gives programs an I/O error, and a program "
    "that does not check its writes leaves corrupt files without a word; `hard` waits instead";
constexpr std::string_view k_softerr =
    "`softerr`: as `soft`, with ETIMEDOUT: programs that do not check their writes leave corrupt files";
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
    "`udp`: fragments of different packets can be mixed up on fast networks, which corrupts files silently (nfs(5))";
constexpr std::string_view k_softreval =
    "`softreval`: with the server away, paths are answered from the cache and may be wrong";
constexpr std::string_view k_sync = "`sync`: every write waits for the server: slow";

constexpr auto kernel = OptionUse::kernel;
constexpr auto mount_nfs = OptionUse::mount_nfs;
constexpr auto fstab = OptionUse::fstab;
constexpr auto ignored = OptionUse::ignored;
constexpr auto refused = OptionUse::refused;
constexpr auto any = Versions::any;
constexpr auto v3 = Versions::v3;
constexpr auto v4 = Versions::v4;

constexpr auto k_options = std::to_array<OptionSpec>({
    // name, key, value, use, versions, consequence
    {"rw", "access", "rw", kernel, any, {}},
    {"ro", "access", "ro", kernel, any, {}},
    {"hard", "recovery", "hard", kernel, any, {}},
    {"soft", "recovery", "soft", kernel, any, k_soft},
    {"softerr", "recovery", "softerr", kernel, any, k_softerr},
    {"softreval", "softreval", "yes", kernel, any, k_softreval},
    {"nosoftreval", "softreval", "no", kernel, any, {}},
    {"vers", "vers", {}, kernel, any, {}},
    {"nfsvers", "vers", {}, kernel, any, {}},
    {"v3", "vers", "3", kernel, any, {}},
    {"v4", "vers", "4", kernel, any, {}},
    {"v4.0", "vers", "4.0", kernel, any, {}},
    {"v4.1", "vers", "4.1", kernel, any, {}},
    {"v4.2", "vers", "4.2", kernel, any, {}},
    {"minorversion", {}, {}, kernel, v4, {}},
    {"proto", "proto", {}, kernel, any, {}},
    {"tcp", "proto", "tcp", kernel, any, {}},
    {"udp", "proto", "udp", kernel, v3, k_udp},
    {"rdma", "proto", "rdma", kernel, any, {}},
    {"port", {}, {}, kernel, any, {}},
    {"timeo", {}, {}, kernel, any, {}},
    {"retrans", {}, {}, kernel, any, {}},
    {"rsize", {}, {}, kernel, any, {}},
    {"wsize", {}, {}, kernel, any, {}},
    {"bsize", {}, {}, kernel, any, {}},
    {"namlen", {}, {}, kernel, v3, {}},
    {"nconnect", {}, {}, kernel, any, {}},
    {"max_connect", {}, {}, kernel, v4, {}},
    {"trunkdiscovery", "trunkdiscovery", "yes", kernel, v4, {}},
    {"notrunkdiscovery", "trunkdiscovery", "no", kernel, v4, {}},
    {"ac", "ac", "yes", kernel, any, {}},
    {"noac", "ac", "no", kernel, any, k_noac},
    {"actimeo", {}, {}, kernel, any, {}},
    {"acregmin", {}, {}, kernel, any, {}},
    {"acregmax", {}, {}, kernel, any, {}},
    {"acdirmin", {}, {}, kernel, any, {}},
    {"acdirmax", {}, {}, kernel, any, {}},
    {"cto", "cto", "yes", kernel, any, {}},
    {"nocto", "cto", "no", kernel, any, k_nocto},
    {"lookupcache", {}, {}, kernel, any, {}},
    {"rdirplus", "rdirplus", "yes", kernel, any, {}},
    {"nordirplus", "rdirplus", "no", kernel, any, {}},
    {"acl", "acl", "yes", kernel, v3, {}},
    {"noacl", "acl", "no", kernel, v3, {}},
    {"lock", "lock", "yes", kernel, v3, {}},
    {"nolock", "lock", "no", kernel, v3, k_nolock},
    {"local_lock", {}, {}, kernel, v3, k_local_lock},
    {"sharecache", "sharecache", "yes", kernel, any, {}},
    {"nosharecache", "sharecache", "no", kernel, any, {}},
    {"resvport", "resvport", "yes", kernel, any, {}},
    {"noresvport", "resvport", "no", kernel, any, {}},
    {"fsc", "fsc", "yes", kernel, any, {}},
    {"nofsc", "fsc", "no", kernel, any, {}},
    {"migration", "migration", "yes", kernel, v4, {}},
    {"nomigration", "migration", "no", kernel, v4, {}},
    {"write", {}, {}, kernel, any, {}},
    {"sec", {}, {}, kernel, any, {}},
    {"xprtsec", {}, {}, kernel, any, {}},
    {"context", {}, {}, kernel, any, {}},
    {"clientaddr", {}, {}, kernel, v4, {}},
    {"addr", {}, {}, kernel, any, {}},
    {"mountaddr", {}, {}, kernel, v3, {}},
    {"mounthost", {}, {}, mount_nfs, v3, {}},
    {"mountport", {}, {}, kernel, v3, {}},
    {"mountproto", {}, {}, kernel, v3, {}},
    {"mountvers", {}, {}, kernel, v3, {}},
    {"bg", "ground", "bg", mount_nfs, any, k_bg},
    {"fg", "ground", "fg", mount_nfs, any, {}},
    {"retry", {}, {}, mount_nfs, any, {}},
    {"sloppy", "sloppy", "yes", mount_nfs, any, {}},
    {"intr", "intr", "yes", ignored, any, {}},
    {"nointr", "intr", "no", ignored, any, {}},
    {"posix", "posix", "yes", kernel, v3, {}},
    {"noposix", "posix", "no", kernel, v3, {}},
    // mount(8)
    {"defaults", "defaults", "yes", mount_nfs, any, {}},
    {"sync", "sync", "sync", kernel, any, k_sync},
    {"async", "sync", "async", kernel, any, {}},
    {"dirsync", "dirsync", "yes", kernel, any, {}},
    {"suid", "suid", "yes", kernel, any, {}},
    {"nosuid", "suid", "no", kernel, any, {}},
    {"dev", "dev", "yes", kernel, any, {}},
    {"nodev", "dev", "no", kernel, any, {}},
    {"exec", "exec", "yes", kernel, any, {}},
    {"noexec", "exec", "no", kernel, any, {}},
    {"atime", "atime", "default", mount_nfs, any, {}}, // nfs(5): the server keeps the times, these have no effect
    {"noatime", "atime", "noatime", kernel, any, {}},
    {"relatime", "atime", "relatime", kernel, any, {}},
    {"strictatime", "atime", "strictatime", kernel, any, {}},
    {"diratime", "diratime", "yes", kernel, any, {}},
    {"nodiratime", "diratime", "no", kernel, any, {}},
    {"auto", "auto", "yes", fstab, any, {}},
    {"noauto", "auto", "no", fstab, any, {}},
    {"_netdev", "_netdev", "yes", fstab, any, {}},
    {"nofail", "nofail", "yes", fstab, any, {}},
    {"user", "user", "yes", fstab, any, {}},
    {"nouser", "user", "no", fstab, any, {}},
    {"users", "users", "yes", fstab, any, {}},
    {"owner", "owner", "yes", fstab, any, {}},
    {"group", "group", "yes", fstab, any, {}},
    {"comment", {}, {}, fstab, any, {}},
    {"remount", "remount", "yes", refused, any, {}},
    {"bind", "bind", "yes", refused, any, {}},
    {"rbind", "bind", "rbind", refused, any, {}},
    {"move", "move", "yes", refused, any, {}},
    {"loop", "loop", "yes", refused, any, {}},
});

constexpr auto k_keys = std::to_array<KeySpec>({
    {"access", Comparison::exact, "rw"},
    {"recovery", Comparison::exact, "hard"},
    {"softreval", Comparison::exact, "no"},
    {"vers", Comparison::version, {}},
    {"minorversion", Comparison::none, {}}, // part of vers
    {"proto", Comparison::transport, {}},
    {"port", Comparison::exact, "2049"},
    {"rsize", Comparison::at_most, {}},
    {"wsize", Comparison::at_most, {}},
    {"bsize", Comparison::none, {}},
    {"namlen", Comparison::none, {}},
    {"nconnect", Comparison::first_mount, "1"},
    {"max_connect", Comparison::first_mount, "1"},
    {"trunkdiscovery", Comparison::none, {}},
    {"ac", Comparison::exact, "yes"},
    {"acregmin", Comparison::exact, "3"},
    {"acregmax", Comparison::exact, "60"},
    {"acdirmin", Comparison::exact, "30"},
    {"acdirmax", Comparison::exact, "60"},
    {"cto", Comparison::exact, "yes"},
    {"lookupcache", Comparison::exact, "all"},
    {"rdirplus", Comparison::exact, "yes"},
    {"acl", Comparison::exact, "yes"},
    {"lock", Comparison::exact, "yes"},
    {"local_lock", Comparison::exact, "none"},
    {"sharecache", Comparison::exact, "yes"},
    {"resvport", Comparison::exact, "yes"},
    {"fsc", Comparison::exact, "no"},
    {"migration", Comparison::exact, "no"},
    {"write", Comparison::exact, "lazy"},
    {"sec", Comparison::exact, "sys"},
    {"xprtsec", Comparison::exact, "none"},
    {"context", Comparison::none, {}}, // shown expanded and quoted
    {"addr", Comparison::none, {}},
    {"mountaddr", Comparison::none, {}},
    {"mounthost", Comparison::none, {}},
    {"mountport", Comparison::none, {}},
    {"mountproto", Comparison::none, {}},
    {"mountvers", Comparison::none, {}},
    {"posix", Comparison::exact, "no"},
    {"sync", Comparison::exact, "async"},
    {"dirsync", Comparison::exact, "no"},
    {"suid", Comparison::exact, "yes"},
    {"dev", Comparison::exact, "yes"},
    {"exec", Comparison::exact, "yes"},
    {"atime", Comparison::exact, "strictatime"},
    {"diratime", Comparison::exact, "yes"},
});

} // namespace

std::span<const OptionSpec> option_table() {
  return k_options;
}

const OptionSpec* find_option(std::string_view name) {
  for (const auto& row : k_options)
    if (row.name == name)
      return &row;
  return nullptr;
}

KeySpec find_key(std::string_view key) {
  for (const auto& row : k_keys)
    if (row.key == key)
      return row;
  return {key, Comparison::exact, {}};
}

} // namespace sharefs::mounts
