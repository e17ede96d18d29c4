// Small steps on files that every part of labguest takes. They end the program on errors: a guest that is
// only half made must not look like a good one.
#define _GNU_SOURCE
#include "labguest.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

void fail(const char* format, ...) {
  const int error = errno;
  va_list arguments;
  va_start(arguments, format);
  fputs("labguest: ", stderr);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, ": %s\n", strerror(error));
  fflush(stderr);
  _exit(125);
}

// The directory may exist; its mode is set either way, whatever the umask.
void make_directory(const char* path, mode_t mode) {
  if (mkdir(path, mode) != 0 && errno != EEXIST)
    fail("mkdir %s", path);
  if (chmod(path, mode) != 0)
    fail("chmod %s", path);
}

void make_link(const char* target, const char* path) {
  if (symlink(target, path) != 0 && errno != EEXIST)
    fail("link %s", path);
}

void write_text(const char* path, const char* text) {
  const int file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
    fail("write %s", path);
  close(file);
}

void mount_or_fail(const char* source, const char* target, const char* type, unsigned long flags, const char* options) {
  if (mount(source, target, type, flags, options) != 0)
    fail("mount %s on %s", source, target);
}

// As `mkdir -p` of the directory, `cat >path` and `chmod MODE path`, if there is a mode.
void write_input(const char* path, const char* mode) {
  char above[PATH_MAX];
  snprintf(above, sizeof above, "%s", path);
  for (char* slash = strchr(above + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(above, 0777) != 0 && errno != EEXIST)
      fail("mkdir %s", above);
    *slash = '/';
  }
  const int file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0)
    fail("create %s", path);
  static char buffer[1 << 16];
  ssize_t length;
  while ((length = read(STDIN_FILENO, buffer, sizeof buffer)) > 0)
    if (write(file, buffer, (size_t)length) != length)
      fail("write %s", path);
  if (length < 0 || (*mode && fchmod(file, (mode_t)strtoul(mode, NULL, 8)) != 0) || close(file) != 0)
    fail("write %s", path);
}

static char copy_target[PATH_MAX];

static void copy_file(const char* from, const char* to, const struct stat* status) {
  static char buffer[1 << 16];
  const int in = open(from, O_RDONLY | O_CLOEXEC);
  if (in < 0)
    return; // a guest of an ordinary user cannot read /etc/shadow, and needs no password
  const int out = open(to, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (out < 0)
    fail("create %s", to);
  ssize_t length;
  while ((length = read(in, buffer, sizeof buffer)) > 0)
    if (write(out, buffer, (size_t)length) != length)
      fail("write %s", to);
  if (fchown(out, status->st_uid, status->st_gid) != 0 || fchmod(out, status->st_mode & 07777) != 0)
    fail("access of %s", to);
  close(in);
  close(out);
}

// Parts of /etc that nothing in the lab reads: to copy them takes most of the time in which a host is made.
static bool is_ballast(const char* path) {
  static const char* const patterns[] = {"/etc/alternatives/*.gz", // manual pages
                                         "/etc/ssl",
                                         "/etc/X11",
                                         "/etc/apt",
                                         "/etc/fonts",
                                         "/etc/postgresql*",
                                         "/etc/java*",
                                         "/etc/rc?.d",
                                         "/etc/init.d",
                                         "/etc/xdg",
                                         "/etc/libibverbs.d",
                                         "/etc/logrotate.d"};
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
    if (fnmatch(patterns[i], path, FNM_PATHNAME) == 0)
      return true;
  return false;
}

static int copy_entry(const char* path, const struct stat* status, int kind, struct FTW* walk) {
  char target[2 * PATH_MAX];
  snprintf(target, sizeof target, "%s%s", copy_target, path);
  if (walk->level <= 2 && is_ballast(path))
    return kind == FTW_D ? FTW_SKIP_SUBTREE : FTW_CONTINUE;
  if (kind == FTW_D || kind == FTW_DNR) {
    make_directory(target, status->st_mode & 07777);
  } else if (kind == FTW_SL) {
    char link[PATH_MAX];
    const ssize_t length = readlink(path, link, sizeof link - 1);
    if (length >= 0) {
      link[length] = '\0';
      make_link(link, target);
    }
  } else if (S_ISREG(status->st_mode)) {
    copy_file(path, target, status);
  }
  return FTW_CONTINUE;
}

// Copies /etc, without what nobody in the lab reads, to `target`/etc.
void copy_etc(const char* target) {
  snprintf(copy_target, sizeof copy_target, "%s", target);
  if (nftw("/etc", copy_entry, 32, FTW_PHYS | FTW_ACTIONRETVAL) != 0)
    fail("copy /etc");
}
