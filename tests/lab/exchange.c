// What a user can do to names while another program is at work.
//   exchange A B               exchanges them, over and over, until it is killed: what was checked under a name is then
//                              not what is used under it
//   exchange A B --read FILE   moves A to B, once, when somebody has read FILE
// Prints a line once it is at work.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

static void at_work(void) {
  puts("at work");
  fflush(stdout);
}

// It may be read more than once: the last time is over when nothing was read for some milliseconds.
static int wait_for_reader(const char* path) {
  char events[4096];
  struct pollfd watch = {.fd = inotify_init1(IN_CLOEXEC), .events = POLLIN};
  if (inotify_add_watch(watch.fd, path, IN_CLOSE_NOWRITE) < 0)
    return -1;
  at_work();
  for (int patience = -1; poll(&watch, 1, patience) > 0; patience = 8)
    if (read(watch.fd, events, sizeof events) < 0)
      return -1;
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 5 && strcmp(argv[3], "--read") == 0)
    return wait_for_reader(argv[4]) != 0 || rename(argv[1], argv[2]) != 0;
  if (argc != 3)
    return 2;
  at_work();
  for (;;) {
    renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE); // one may be missing just now
    // Not a busy loop: the victim needs the only core, too. By chance, so as not to keep step with it.
    usleep((useconds_t)(random() % 1000));
  }
}
