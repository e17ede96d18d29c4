// Exchanges two names, over and over, until it is killed: `exchange A B`. What was checked under a name is then not
// what is used under it. If only one of the names exists, it goes to and fro between the two. Prints a line once it is
// at work.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int move(const char* from, const char* to, unsigned flags) {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
}

int main(int argc, char** argv) {
  if (argc != 3)
    return 2;
  for (unsigned long turn = 0;; turn++) {
    if (move(argv[1], argv[2], RENAME_EXCHANGE) != 0 && errno == ENOENT &&
        move(argv[1], argv[2], RENAME_NOREPLACE) != 0)
      move(argv[2], argv[1], RENAME_NOREPLACE);
    if (turn == 0) {
      puts("exchanging");
      fflush(stdout);
    }
    // Not a busy loop: the victim needs the only core, too. By chance, so as not to keep step with it.
    usleep((useconds_t)(random() % 1000));
  }
}
