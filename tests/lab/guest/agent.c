// The agent: carries out the requests that the driver outside sends over the first serial line.
//
//   RUN id         start the command in exchange/jobs/id.request: words in the form of parse_command(), each
//                  ended by a NUL; standard input is id.in if it exists, output goes to id.out and id.err
//   KILL id signal to the job's process group
//   SYNC id        make the output so far visible outside; answered by SYNCED id
//   HALT           power off; a system that has an init of its own shuts down in its order
//
// It says READY once, and DONE id status (as from wait(2)) for each job. Files carry the contents because
// they are safe for any bytes and any size; each has a new name because the guest caches what it has read.
#define _GNU_SOURCE
#include "labguest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { k_most_jobs = 512, k_most_words = 1024, k_failed_to_start = 125 << 8 };

struct job {
  long id; // 0: free
  pid_t process;
  int output[2];
};

static struct job jobs[k_most_jobs];
static int line; // the serial line

static struct job* find_job(long id) {
  for (struct job* job = jobs; job < jobs + k_most_jobs; job++)
    if (job->id == id)
      return job;
  return NULL;
}

static int open_job_file(long id, const char* suffix, int flags) {
  char path[64];
  snprintf(path, sizeof path, LAB_EXCHANGE "/jobs/%ld.%s", id, suffix);
  return open(path, flags | O_CLOEXEC, 0644);
}

// Splits the request into words; the result stays valid until the next call.
static char** read_request(long id) {
  static char* text;
  static char* words[k_most_words + 1];
  struct stat status;
  const int file = open_job_file(id, "request", O_RDONLY);
  if (file < 0 || fstat(file, &status) != 0)
    return NULL;
  free(text);
  text = calloc(1, (size_t)status.st_size + 1);
  const bool complete = text && read(file, text, (size_t)status.st_size) == status.st_size;
  close(file);
  if (!complete)
    return NULL;
  int count = 0;
  for (char* word = text; word < text + status.st_size && count < k_most_words; word += strlen(word) + 1)
    words[count++] = word;
  words[count] = NULL;
  return words;
}

static void finish(struct job* job, int status) {
  for (int i = 0; i < 2; i++) {
    fsync(job->output[i]);
    close(job->output[i]);
  }
  dprintf(line, "DONE %ld %d\n", job->id, status);
  job->id = 0;
}

static void run(long id) {
  struct job* job = find_job(0);
  if (!job) {
    dprintf(line, "DONE %ld %d\n", id, k_failed_to_start);
    return;
  }
  int input = open_job_file(id, "in", O_RDONLY);
  if (input < 0)
    input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  job->id = id;
  job->output[0] = open_job_file(id, "out", O_CREAT | O_TRUNC | O_WRONLY | O_APPEND);
  job->output[1] = open_job_file(id, "err", O_CREAT | O_TRUNC | O_WRONLY | O_APPEND);
  const int stdio[3] = {input, job->output[0], job->output[1]};
  char** words = read_request(id);
  struct command command;
  job->process = words && parse_command(words, &command) == 0 ? spawn(&command, stdio) : -1;
  close(input);
  if (job->process < 0) {
    dprintf(job->output[1], "labguest: no such host, or a request of an unknown form\n");
    finish(job, k_failed_to_start);
  }
}

static void synchronize(long id) {
  const struct job* job = find_job(id);
  if (job && id) {
    fsync(job->output[0]);
    fsync(job->output[1]);
  }
  dprintf(line, "SYNCED %ld\n", id);
}

static void obey(const char* request) {
  long id = 0;
  int signal_number = 0;
  if (sscanf(request, "RUN %ld", &id) == 1) {
    run(id);
  } else if (sscanf(request, "KILL %ld %d", &id, &signal_number) == 2) {
    const struct job* job = find_job(id);
    if (job && id)
      kill(-job->process, signal_number);
  } else if (sscanf(request, "SYNC %ld", &id) == 1) {
    synchronize(id);
  } else if (strcmp(request, "HALT") == 0) {
    if (getpid() != 1)
      kill(1, SIGRTMIN + 4); // to systemd: `systemctl poweroff`
    else {
      sync();
      reboot(RB_POWER_OFF);
    }
  }
}

static void reap(void) {
  int status;
  pid_t process;
  while ((process = waitpid(-1, &status, WNOHANG)) > 0)
    for (struct job* job = jobs; job < jobs + k_most_jobs; job++)
      if (job->id && job->process == process)
        finish(job, status);
}

static void wake(int signal_number) {
  (void)signal_number;
}

static void read_line(void) {
  static char buffer[4096];
  static size_t length;
  const ssize_t got = read(line, buffer + length, sizeof buffer - 1 - length);
  if (got <= 0) {
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
      return;
    reboot(RB_POWER_OFF); // the driver is gone: nobody could ever stop this guest
  }
  length += (size_t)got;
  buffer[length] = '\0';
  char* end;
  while ((end = strchr(buffer, '\n'))) {
    *end = '\0';
    obey(buffer);
    length -= (size_t)(end + 1 - buffer);
    memmove(buffer, end + 1, length + 1);
  }
}

void serve_requests(const char* terminal) {
  line = open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC);
  struct termios settings;
  if (line < 0 || tcgetattr(line, &settings) != 0)
    fail("%s", terminal);
  cfmakeraw(&settings);
  tcsetattr(line, TCSANOW, &settings);

  // SIGCHLD arrives only inside ppoll(), so that no child's end can fall between reap() and the wait.
  sigset_t children, before;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, &before);
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = wake}, NULL);
  dprintf(line, "READY\n");
  for (;;) {
    struct pollfd input = {.fd = line, .events = POLLIN};
    const int ready = ppoll(&input, 1, NULL, &before);
    reap();
    if (ready > 0)
      read_line();
  }
}
