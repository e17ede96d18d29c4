// Hosts: the namespaces of one simulated machine inside a guest.
#define _GNU_SOURCE
#include "labguest.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

// Process 1 of a host: takes in the orphans of daemons that went to the background, for ever.
static void reap_forever(void) {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  for (;;) {
    int signal_number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    sigwait(&children, &signal_number);
  }
}

static void become_init(const char* name, int ready) {
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
    fail("mount namespace of %s", name);
  setsid();
  build_host_root(name);
  if (write(ready, "", 1) != 1)
    fail("start of %s", name);
  // Nothing of the request that made the host may stay open in it.
  const int null = open("/dev/null", O_RDWR);
  for (int descriptor = 0; descriptor < 3; descriptor++)
    dup2(null, descriptor);
  close_range(3, ~0U, 0);
  reap_forever();
}

// Makes the host `name`: new network, mount, host name, IPC and process namespaces over its disk. It leaves
// LAB_NETNS/name for ip(8) and the number of its process 1 in LAB_HOSTS/name.
int make_host(const char* name) {
  char netns[PATH_MAX], record[PATH_MAX], number[32];
  snprintf(netns, sizeof netns, LAB_NETNS "/%s", name);
  snprintf(record, sizeof record, LAB_HOSTS "/%s", name);
  if (unshare(CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET) != 0)
    fail("namespaces of %s", name);
  write_text(netns, "");
  mount_or_fail("/proc/self/ns/net", netns, NULL, MS_BIND, NULL);

  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0)
    fail("pipe");
  const pid_t init = fork();
  if (init < 0)
    fail("fork");
  if (init == 0) {
    close(ready[0]);
    become_init(name, ready[1]);
  }
  close(ready[1]);
  char byte;
  if (read(ready[0], &byte, 1) != 1)
    return 125; // the child has said why
  snprintf(number, sizeof number, "%d\n", init);
  write_text(record, number);
  return 0;
}

// `kind` is a name in /proc/PID/ns. Returns -1 if there is no such host.
int open_host_namespace(const char* host, const char* kind) {
  char path[PATH_MAX], number[32] = "";
  snprintf(path, sizeof path, LAB_HOSTS "/%s", host);
  const int record = open(path, O_RDONLY | O_CLOEXEC);
  if (record < 0)
    return -1;
  const ssize_t length = read(record, number, sizeof number - 1);
  close(record);
  if (length <= 0)
    return -1;
  snprintf(path, sizeof path, "/proc/%d/ns/%s", atoi(number), kind);
  return open(path, O_RDONLY | O_CLOEXEC);
}
