// Loaded into linux.uml (LD_PRELOAD), because its kernel 6.1 keeps a fixed number of bytes of a process's extended
// registers, and the kernel of the machine takes them back only as a whole ("ptrace set fp regs failed, errno = 14").
// They are more where the processor has AMX. What the guest does not keep is given back as unused.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum {
  k_most = 1 << 16,    // bytes; AMX makes them 11,008
  k_header = 512,      // where the header of an XSAVE area lies (Intel's manual, volume 1, 13.4)
  k_first_of_amx = 17, // the first component that the guest has no room for
};

static long (*g_ptrace)(int, ...);

// All bytes that this machine wants, of which `kept` are the guest's; 0: it takes what the guest has.
static size_t whole_size(long pid, size_t kept) {
  static size_t size;
  static uint8_t bytes[k_most];
  if (size == 0) {
    struct iovec all = {bytes, sizeof bytes};
    if (g_ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &all) < 0)
      return 0;
    size = all.iov_len;
  }
  return size > kept ? size : 0;
}

long ptrace(enum __ptrace_request request, ...) {
  if (!g_ptrace)
    g_ptrace = (long (*)(int, ...))dlsym(RTLD_NEXT, "ptrace");
  va_list arguments;
  va_start(arguments, request);
  const long pid = va_arg(arguments, long);
  void* const address = va_arg(arguments, void*);
  void* const data = va_arg(arguments, void*);
  va_end(arguments);
  const struct iovec* const kept = data;
  size_t size = 0;
  if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE && kept->iov_len > k_header + sizeof(uint64_t))
    size = whole_size(pid, kept->iov_len);
  if (size == 0)
    return g_ptrace(request, pid, address, data);
  static uint8_t bytes[k_most]; // zero behind what is kept
  memcpy(bytes, kept->iov_base, kept->iov_len);
  uint64_t used;
  memcpy(&used, bytes + k_header, sizeof used);
  used &= (UINT64_C(1) << k_first_of_amx) - 1;
  memcpy(bytes + k_header, &used, sizeof used);
  struct iovec whole = {bytes, size};
  return g_ptrace(request, pid, address, &whole);
}
