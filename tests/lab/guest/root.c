// The root file systems: that of a guest, on top of the outer machine's files, and that of a host in it.
#define _GNU_SOURCE
#include "labguest.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// The new root is built here, then becomes `/`. The outer machine has the directory, too: it must exist
// before anything of ours is mounted.
#define NEW_ROOT "/mnt"

static void make_skeleton(void) {
  static const char* const directories[] = {"dev",
                                            "etc",
                                            "home",
                                            "local",
                                            "media",
                                            "mnt",
                                            "opt",
                                            "proc",
                                            "root",
                                            "run",
                                            "srv",
                                            "sys",
                                            "usr",
                                            "var",
                                            "var/cache",
                                            "var/lib",
                                            "var/lib/nfs",
                                            "var/lib/nfs/sm",
                                            "var/lib/nfs/sm.bak",
                                            "var/lib/nfs/v4recovery",
                                            "var/lib/nfs/nfsdcld",
                                            "var/lib/nfs/rpc_pipefs",
                                            "var/log",
                                            "var/spool"};
  for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
    make_directory(directories[i], 0755);
  make_directory("root", 0700);
  make_directory("tmp", 01777);
  make_directory("var/tmp", 01777);

  static const char* const merged[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
  for (size_t i = 0; i < sizeof merged / sizeof *merged; i++) {
    char target[16];
    snprintf(target, sizeof target, "usr/%s", merged[i]);
    make_link(target, merged[i]);
  }
  make_link("../run", "var/run");
}

static void make_lab_directories(void) {
  static const char* const directories[] = {"lab-bin", "project", "binary", "share"};
  for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
    make_directory(directories[i], 0755);
}

// A disk that has an /etc has been installed before: what its host changed stays.
static void install(void) {
  if (access("etc/passwd", F_OK) == 0)
    return;
  make_skeleton();
  make_lab_directories();
  copy_etc(NEW_ROOT);
  write_text("etc/fstab", "");
  write_text("etc/exports", "");
  write_text("etc/resolv.conf", "");
  write_text("var/lib/nfs/etab", "");
  write_text("var/lib/nfs/rmtab", "");
  write_text("var/lib/nfs/state", "");
}

static void mount_volatile(void) {
  mount_or_fail("proc", "proc", "proc", 0, NULL);
  mount_or_fail("sys", "sys", "sysfs", 0, NULL);
  mount_or_fail("run", "run", "tmpfs", 0, "mode=755");
  static const char* const runtime[] = {"run/netns",      "run/lab-hosts",       "run/rpcbind",
                                        "run/rpc_pipefs", "run/sendsigs.omit.d", "run/sshd"};
  for (size_t i = 0; i < sizeof runtime / sizeof *runtime; i++)
    make_directory(runtime[i], 0755);
  make_directory("run/lock", 01777);
}

static void mount_devices(void) {
  mount_or_fail("dev", "dev", "devtmpfs", 0, NULL);
  make_directory("dev/pts", 0755);
  make_directory("dev/shm", 01777);
  mount_or_fail("devpts", "dev/pts", "devpts", 0, "gid=5,mode=620,ptmxmode=666");
  mount_or_fail("shm", "dev/shm", "tmpfs", 0, NULL);
  make_link("/proc/self/fd", "dev/fd");
  make_link("/proc/self/fd/0", "dev/stdin");
  make_link("/proc/self/fd/1", "dev/stdout");
  make_link("/proc/self/fd/2", "dev/stderr");
}

static void mount_program_under_test(const char* program) {
  char directory[PATH_MAX], target[PATH_MAX + sizeof LAB_BINARY];
  const char* name = strrchr(program, '/');
  snprintf(directory, sizeof directory, "%.*s", (int)(name - program), program);
  snprintf(target, sizeof target, LAB_BINARY "%s", name);
  mount_or_fail("binary", "binary", "hostfs", MS_RDONLY, directory);
  unlink("lab-bin/sharefs"); // a disk may have the link of an earlier boot
  make_link(target, "lab-bin/sharefs");
}

static void set_hostname(const char* name) {
  char line[80];
  snprintf(line, sizeof line, "%s\n", name);
  write_text("etc/hostname", line);
  if (sethostname(name, strlen(name)) != 0)
    fail("sethostname %s", name);
}

static void bring_up_loopback(void) {
  struct ifreq request = {.ifr_flags = IFF_UP | IFF_RUNNING};
  strcpy(request.ifr_name, "lo");
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (any < 0 || ioctl(any, SIOCSIFFLAGS, &request) != 0)
    fail("loopback up");
  close(any);
}

// Makes the current directory, which is NEW_ROOT, the root, and lets go of the old one.
static void enter_root(void) {
  make_directory("oldroot", 0700);
  if (syscall(SYS_pivot_root, ".", "oldroot") != 0 || chroot(".") != 0 || chdir("/") != 0)
    fail("pivot_root");
  umount2("/oldroot", MNT_DETACH);
  rmdir("/oldroot");
}

// With the kernel's root, the outer machine's `/`, still in place.
void build_guest_root(const struct boot_config* config) {
  if (*config->disk) {
    char device[PATH_MAX];
    snprintf(device, sizeof device, "/dev/%s", config->disk); // the kernel has mounted a /dev already
    mount_or_fail(device, NEW_ROOT, "ext4", 0, NULL);
  } else {
    mount_or_fail("root", NEW_ROOT, "tmpfs", 0, "mode=755,size=90%");
  }
  if (chdir(NEW_ROOT) != 0)
    fail("chdir " NEW_ROOT);
  if (*config->init) {
    make_lab_directories();
    // Its own programs, but the modules of this kernel.
    make_directory("usr/lib/modules", 0755);
    mount_or_fail("modules", "usr/lib/modules", "hostfs", MS_RDONLY, "/usr/lib/uml/modules");
  } else {
    install();
    mount_or_fail("usr", "usr", "hostfs", MS_RDONLY, "/usr");
  }
  make_directory("exchange", 0700);
  make_directory("disks", 0700);

  mount_or_fail("project", "project", "hostfs", MS_RDONLY, config->project);
  mount_or_fail("exchange", "exchange", "hostfs", 0, config->exchange);
  mount_or_fail("share", "share", "hostfs", 0, config->share);
  if (*config->binary)
    mount_program_under_test(config->binary);
  mount_volatile();
  mount_devices();
  set_hostname(config->hostname);
  enter_root();
  bring_up_loopback();
}

// Called in the new namespaces of the host. Its disk, LAB_DISKS/name, is mounted in the guest and stays so
// when the host is gone: what is on it survives a power loss.
void build_host_root(const char* name) {
  char disk[PATH_MAX];
  snprintf(disk, sizeof disk, LAB_DISKS "/%s", name);
  mount_or_fail(disk, NEW_ROOT, NULL, MS_BIND, NULL);
  if (chdir(NEW_ROOT) != 0)
    fail("chdir " NEW_ROOT);
  install();

  static const char* const shared[] = {"/usr", "/dev", LAB_PROJECT, LAB_BINARY, LAB_SHARE};
  for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
    mount_or_fail(shared[i], shared[i] + 1, NULL, MS_BIND | MS_REC, NULL);
  char program[PATH_MAX];
  const ssize_t length = readlink(LAB_BIN "/sharefs", program, sizeof program - 1);
  if (length > 0) {
    program[length] = '\0';
    make_link(program, "lab-bin/sharefs");
  }
  mount_volatile();
  set_hostname(name);
  enter_root();
  bring_up_loopback();
}
