#include "exports/system_directory.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <array>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

struct Row {
  std::string_view paths;
  bool below; ///< everything below them is part of the system, too
  std::string_view why;
};

constexpr std::string_view k_programs = "holds programs and libraries that root runs";

// Sources: hier(7) and file-hierarchy(7). /srv, /mnt and /media are left out, because they are for data. Directories
// below /home, /opt, /var/lib and /var/cache may be data, too; users cannot write to the directories above those.
constexpr std::array k_rows{
    Row{"/etc", true, "holds the configuration of the system"},
    Row{"/usr /bin /sbin /lib /lib32 /lib64 /libx32", true, k_programs},
    Row{"/opt", false, k_programs},
    Row{"/boot", true, "holds the kernel and its boot loader"},
    Row{"/dev /proc /sys", true, "is a view of the kernel"},
    Row{"/run", true, "holds the state of running services"},
    Row{"/root", true, "is root's home"},
    Row{"/home", false, "holds the homes of all users"},
    Row{"/tmp", false, "is everyone's, and each user's own files in it are safe by its sticky bit only"},
    Row{"/var", false, "holds the state of services"},
    Row{"/var/tmp", false, "is everyone's, and each user's own files in it are safe by its sticky bit only"},
    Row{"/var/cache", false, "holds the caches of services"},
    Row{"/var/lib", false, "holds the state of services"},
    Row{"/var/lib/dpkg /var/lib/rpm", true, "holds the package database, whose scripts root runs"},
    Row{"/var/lib/nfs", true, "holds what the NFS server exports and to whom"},
    Row{"/var/lib/sharefs", true, "holds sharefs' journal, which `sharefs undo` runs as root"},
    Row{"/var/lib/systemd", true, "holds the state of systemd"},
    Row{"/var/log", true, "holds logs, to which services append as root"},
    Row{"/var/spool", false, "holds jobs that services run"},
    Row{"/var/spool/cron", true, "holds jobs that root runs"},
};

} // namespace

std::string system_directory_reason(std::string_view directory) {
  for (const auto& row : k_rows)
    for (const auto& path : split_words(row.paths)) {
      if (directory == path)
        return fmt::format("it {}", row.why);
      if (row.below && is_under(directory, path))
        return fmt::format("it lies below {}, which {}", path, row.why);
      if (is_under(path, directory))
        return fmt::format("{} in it {}", path, row.why);
    }
  return {};
}

} // namespace sharefs::exports
