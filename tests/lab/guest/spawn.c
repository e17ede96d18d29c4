// Running commands on hosts: enter the namespaces, become the user, execute.
#define _GNU_SOURCE
#include "labguest.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

// The shell's own exit codes for commands that could not be started.
enum { k_cannot_execute = 126, k_not_found = 127 };

#define DEFAULT_PATH LAB_BIN ":/usr/sbin:/usr/bin:/sbin:/bin"

// `words` is HOST [--user NAME] [--directory DIR] [--terminal DEVICE] [--set NAME=VALUE]... -- COMMAND...
// With --write FILE, the command is the mode of the file, or "" if its mode stays. Returns 0, or -1 if that is not its
// form. The command points into `words`, which it rearranges.
int parse_command(char** words, struct command* command) {
  *command = (struct command){0};
  if (!words[0])
    return -1;
  command->host = words[0];
  command->environment = words; // settings gather at the front, over words already read
  int settings = 0;
  char** word = words + 1;
  for (; *word && strcmp(*word, "--") != 0; word += 2) {
    if (!word[1])
      return -1;
    if (strcmp(*word, "--user") == 0)
      command->user = word[1];
    else if (strcmp(*word, "--directory") == 0)
      command->directory = word[1];
    else if (strcmp(*word, "--terminal") == 0)
      command->terminal = word[1];
    else if (strcmp(*word, "--write") == 0)
      command->write = word[1];
    else if (strcmp(*word, "--set") == 0)
      command->environment[settings++] = word[1];
    else
      return -1;
  }
  if (!*word || !word[1])
    return -1;
  command->argv = word + 1;
  command->environment[settings] = NULL;
  return 0;
}

static void enter_host(const char* host) {
  // The mount namespace last: /proc and the records of hosts are the guest's.
  static const char* const kinds[] = {"uts", "ipc", "net", "mnt"};
  enum { k_count = sizeof kinds / sizeof *kinds };
  int namespaces[k_count];
  for (int i = 0; i < k_count; i++)
    namespaces[i] = open_host_namespace(host, kinds[i]);
  for (int i = 0; i < k_count; i++)
    if (setns(namespaces[i], 0) != 0)
      fail("enter %s of %s", kinds[i], host);
}

static void set_home(const struct passwd* entry) {
  setenv("HOME", entry->pw_dir, 1);
  setenv("SHELL", entry->pw_shell, 1);
  setenv("USER", entry->pw_name, 1);
  setenv("LOGNAME", entry->pw_name, 1);
}

// The files are read directly: a static program cannot load the C library's name services.
static struct passwd* find_user(const char* name) {
  FILE* file = fopen("/etc/passwd", "re");
  struct passwd* entry = NULL;
  if (file)
    while ((entry = fgetpwent(file)) && strcmp(entry->pw_name, name) != 0) {
    }
  if (!entry) {
    errno = ENOENT;
    fail("user %s", name);
  }
  fclose(file);
  return entry;
}

static void set_groups(const char* user, gid_t primary) {
  enum { k_most = 64 };
  gid_t groups[k_most] = {primary};
  size_t count = 1;
  FILE* file = fopen("/etc/group", "re");
  struct group* group;
  while (file && count < k_most && (group = fgetgrent(file)))
    for (char** member = group->gr_mem; *member; member++)
      if (strcmp(*member, user) == 0 && count < k_most)
        groups[count++] = group->gr_gid;
  if (file)
    fclose(file);
  if (setgroups(count, groups) != 0)
    fail("groups of %s", user);
}

static void become_user(const char* name) {
  const struct passwd* entry = find_user(name ? name : "root");
  set_home(entry);
  if (!name)
    return;
  set_groups(name, entry->pw_gid);
  if (setgid(entry->pw_gid) != 0 || setuid(entry->pw_uid) != 0)
    fail("become %s", name);
}

// The command's session owns the terminal, so that keys like Ctrl-C reach it.
static void take_terminal(const char* device) {
  const int terminal = open(device, O_RDWR | O_NOCTTY);
  if (terminal < 0 || ioctl(terminal, TIOCSCTTY, 1) != 0)
    fail("terminal %s", device);
  for (int descriptor = 0; descriptor < 3; descriptor++)
    dup2(terminal, descriptor);
  close(terminal);
}

static void execute(const struct command* command, const int stdio[3]) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGCHLD, SIG_DFL);
  setsid();
  for (int descriptor = 0; descriptor < 3; descriptor++)
    if (stdio[descriptor] != descriptor)
      dup2(stdio[descriptor], descriptor);
  if (strcmp(command->host, "-") != 0)
    enter_host(command->host);
  if (command->terminal)
    take_terminal(command->terminal);
  clearenv();
  setenv("PATH", DEFAULT_PATH, 1);
  setenv("LC_ALL", "C.UTF-8", 1);
  become_user(command->user);
  for (char** setting = command->environment; *setting; setting++)
    putenv(*setting);
  if (chdir(command->directory ? command->directory : "/") != 0)
    fail("chdir %s", command->directory);
  if (command->write) {
    write_input(command->write, command->argv[0]);
    _exit(0);
  }
  execvp(command->argv[0], command->argv);
  const int code = errno == ENOENT ? k_not_found : k_cannot_execute;
  fprintf(stderr, "labguest: %s: %s\n", command->argv[0], strerror(errno));
  fflush(stderr);
  _exit(code);
}

// Starts the command with the given standard input, output and error. Returns its process number as the
// guest sees it, or -1 if the host does not exist. The caller is its parent although it lives in another
// process namespace: setns(2) puts only the next child there.
pid_t spawn(const struct command* command, const int stdio[3]) {
  const bool on_host = strcmp(command->host, "-") != 0;
  int own = -1;
  if (on_host) {
    const int theirs = open_host_namespace(command->host, "pid");
    if (theirs < 0)
      return -1;
    own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    const int entered = setns(theirs, CLONE_NEWPID);
    close(theirs);
    if (own < 0 || entered != 0) {
      close(own);
      return -1;
    }
  }
  const pid_t child = fork();
  if (child == 0)
    execute(command, stdio);
  if (on_host) {
    setns(own, CLONE_NEWPID);
    close(own);
  }
  return child;
}

// `labguest on HOST ...` by hand, in a shell of the guest.
int run_and_wait(char** words) {
  static const int stdio[3] = {0, 1, 2};
  struct command command;
  if (parse_command(words, &command) != 0)
    return 2;
  const pid_t child = spawn(&command, stdio);
  if (child < 0)
    fail("no host %s", command.host);
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
