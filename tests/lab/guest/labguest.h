// labguest: the init program of the lab's guests, and the tool that makes hosts in them.
//
// A guest is a User Mode Linux kernel whose root is the outer machine's `/` (hostfs, read-only).
// labguest builds a private root in memory on top of it, then serves requests on the first serial line.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

// Where things lie in a guest and in every host.
#define LAB_PROJECT "/project"   // the project's source tree, read-only
#define LAB_BINARY "/binary"     // the directory of the program under test, read-only
#define LAB_BIN "/lab-bin"       // first in PATH: a link to the program under test
#define LAB_SHARE "/share"       // files exchanged with the outer machine by tests
#define LAB_EXCHANGE "/exchange" // requests and their output; only in the guest, not in its hosts
#define LAB_DISKS "/disks"       // what survives a host's power loss; only in the guest
#define LAB_NETNS "/run/netns"   // where ip(8) looks for network namespaces
#define LAB_HOSTS "/run/lab-hosts"

// One boot of a guest, read from guest.conf in the exchange directory.
struct boot_config {
  char exchange[PATH_MAX]; // outer path
  char project[PATH_MAX];  // outer path
  char share[PATH_MAX];    // outer path
  char binary[PATH_MAX];   // outer path of the program under test; empty: none
  char hostname[64];
  char disk[64];       // block device of the root file system; empty: a root in memory
  char init[PATH_MAX]; // what the disk, which then holds a whole system, starts as process 1; empty: labguest itself
};

// A command to run, on a host or (host "-") in the guest itself.
struct command {
  const char* host;
  const char* user;      // NULL: root
  const char* directory; // NULL: /
  const char* terminal;  // NULL: the given standard input, output and error
  const char* write;     // a file that takes the standard input, made with the directories above it; NULL: a command
  char** environment;    // NAME=VALUE, NULL at the end
  char** argv;           // NULL at the end
};

// files.c
void fail(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));
void make_directory(const char* path, mode_t mode);
void make_link(const char* target, const char* path);
void write_text(const char* path, const char* text);
void write_input(const char* path, const char* mode);
void mount_or_fail(const char* source, const char* target, const char* type, unsigned long flags, const char* options);
void copy_etc(const char* target);

// root.c
void build_guest_root(const struct boot_config* config);
void build_host_root(const char* name);

// host.c
int make_host(const char* name);
int open_host_namespace(const char* host, const char* kind);

// spawn.c
int parse_command(char** words, struct command* command);
pid_t spawn(const struct command* command, const int stdio[3]);
int run_and_wait(char** words);

// agent.c
void serve_requests(const char* terminal) __attribute__((noreturn));
