// The system call filter is written by hand: the list is short, and libseccomp would be one more library to load at
// each start of `sharefs run`.
#include "sys/process/sandbox.hpp"

#include "sys/process/become.hpp"
#include "sys/process/fd.hpp"
#include "sys/process/rights.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#if defined(__x86_64__)
#define SHAREFS_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SHAREFS_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

#if defined(__has_feature)
#define SHAREFS_HAS_FEATURE(name) __has_feature(name)
#else
#define SHAREFS_HAS_FEATURE(name) 0
#endif

namespace sharefs::sys {
namespace {

/// True in a build with sanitizers: they reserve terabytes of address space and make further system calls.
constexpr bool k_sanitized = SHAREFS_HAS_FEATURE(address_sanitizer) || SHAREFS_HAS_FEATURE(thread_sanitizer)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
                             || true
#endif
    ;

/// Returns the bytes of address space in use. A forked child begins with its parent's address space, which includes the
/// stacks and allocator arenas of all threads.
rlim_t address_space_now() {
  const Fd statm(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  rlim_t pages = 0;
  if (const ssize_t size = ::read(statm.get(), text.data(), text.size()); size > 0)
    std::from_chars(text.data(), text.data() + size, pages);
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

#ifdef SHAREFS_AUDIT_ARCH
using Filter = std::vector<sock_filter>;
constexpr std::uint16_t k_load = BPF_LD | BPF_W | BPF_ABS, k_return = BPF_RET | BPF_K;

constexpr std::uint32_t argument(std::size_t index) {
  // The offset of the low half of the 64-bit argument.
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + index * sizeof(std::uint64_t));
}

/// Skips `skip` instructions unless the loaded word is `value`.
sock_filter unless_equal(int value, std::uint8_t skip) {
  return {BPF_JMP | BPF_JEQ | BPF_K, 0, skip, static_cast<std::uint32_t>(value)};
}

Filter network_filter() {
  const sock_filter allow{k_return, 0, 0, SECCOMP_RET_ALLOW}, end{k_return, 0, 0, SECCOMP_RET_KILL_PROCESS};
  Filter filter{{k_load, 0, 0, offsetof(seccomp_data, arch)},
                {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SHAREFS_AUDIT_ARCH},
                end,
                {k_load, 0, 0, offsetof(seccomp_data, nr)}};
  // libnfs asks for its process id, uid, gid and the time. The time is a system call where the vDSO cannot read the
  // clock.
  for (const int call : {SYS_read,        SYS_write,         SYS_recvfrom,        SYS_sendto,       SYS_connect,
                         SYS_getsockopt,  SYS_close,         SYS_ppoll,
#ifdef SYS_poll
                         SYS_poll,
#endif
                         SYS_writev,      SYS_brk,           SYS_munmap,          SYS_mremap,       SYS_madvise,
                         SYS_futex,       SYS_clock_gettime, SYS_restart_syscall, SYS_rt_sigreturn, SYS_exit_group,
                         SYS_getpid,      SYS_getuid,        SYS_getgid,
#ifdef SYS_time
                         SYS_time,
#endif
                         SYS_gettimeofday}) {
    filter.push_back(unless_equal(call, 1));
    filter.push_back(allow);
  }
  for (const int call : {SYS_mmap, SYS_mprotect}) // memory may be mapped, but not as executable
    filter.insert(filter.end(), {unless_equal(call, 4),
                                 {k_load, 0, 0, argument(2)},
                                 {BPF_JMP | BPF_JSET | BPF_K, 0, 1, PROT_EXEC},
                                 end,
                                 allow});
  filter.insert(filter.end(), {unless_equal(SYS_socket, 7), // TCP over IPv4 and IPv6
                               {k_load, 0, 0, argument(1)},
                               unless_equal(SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 4),
                               {k_load, 0, 0, argument(0)},
                               {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AF_INET},
                               unless_equal(AF_INET6, 1),
                               allow,
                               end});
  filter.push_back(end);
  return filter;
}

int forbid_system_calls() {
  Filter filter = network_filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
    return 0;
  return errno == EINVAL ? 0 : errno; // EINVAL: the kernel was built without filters; the other limits still apply
}
#else
int forbid_system_calls() {
  return 0;
}
#endif

} // namespace

int drop_privileges() {
  if (::geteuid() == 0)
    if (const int error = become({"nobody", k_nobody, k_nobody, {}, "/"}); error != 0)
      return error;
  // A service may have capabilities without being root.
  if (const int error = set_capabilities(0); error != 0)
    return error;
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : errno;
}

int restrict_to_network() {
  struct Limit {
    __rlimit_resource resource;
    rlim_t at_most;
  };
  constexpr rlim_t more_memory = 64U << 20U, seconds = 10, sockets = 32;
  for (const Limit& limit : {Limit{RLIMIT_FSIZE, 0}, Limit{RLIMIT_NPROC, 0}, Limit{RLIMIT_CORE, 0},
                             Limit{RLIMIT_CPU, seconds}, Limit{RLIMIT_NOFILE, sockets},
                             Limit{RLIMIT_AS, k_sanitized ? RLIM_INFINITY : address_space_now() + more_memory}})
    if (const int error = lower_limit(limit.resource, limit.at_most); error != 0)
      return error;
  return k_sanitized ? 0 : forbid_system_calls();
}

} // namespace sharefs::sys
