// Entry: the kernel starts labguest as process 1; by hand it is a command.
#define _GNU_SOURCE
#include "labguest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void read_setting(struct boot_config* config, const char* key, const char* value) {
  const struct {
    const char* key;
    char* place;
    size_t size;
  } settings[] = {
      {"project", config->project, sizeof config->project}, {"share", config->share, sizeof config->share},
      {"binary", config->binary, sizeof config->binary},    {"hostname", config->hostname, sizeof config->hostname},
      {"disk", config->disk, sizeof config->disk},          {"init", config->init, sizeof config->init},
  };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
    if (strcmp(settings[i].key, key) == 0)
      snprintf(settings[i].place, settings[i].size, "%s", value);
}

// The exchange directory comes by the kernel's command line, whose unknown words become the environment of
// process 1; everything else is in a file in it, where paths may hold any character but a line end.
static void read_config(struct boot_config* config) {
  const char* exchange = getenv("LAB_EXCHANGE");
  char path[PATH_MAX + 16], text[PATH_MAX + 16];
  snprintf(config->exchange, sizeof config->exchange, "%s", exchange ? exchange : "");
  snprintf(path, sizeof path, "%s/guest.conf", config->exchange);
  FILE* file = fopen(path, "re");
  if (!file)
    fail("open %s", path);
  while (fgets(text, sizeof text, file)) {
    text[strcspn(text, "\n")] = '\0';
    char* equals = strchr(text, '=');
    if (!equals)
      continue;
    *equals = '\0';
    read_setting(config, text, equals + 1);
  }
  fclose(file);
}

// The agent is there before the system that the disk has, and answers until that kills everything at its end.
static void start_init(const char* init) {
  const pid_t agent = fork();
  if (agent < 0)
    fail("fork");
  if (agent == 0) {
    setsid();
    return;
  }
  execl(init, init, NULL);
  fail("%s", init);
}

int main(int argc, char** argv) {
  umask(022);
  if (getpid() == 1) {
    static struct boot_config config;
    read_config(&config);
    build_guest_root(&config);
    if (*config.init)
      start_init(config.init);
    serve_requests("/dev/ttyS0");
  }
  if (argc == 3 && strcmp(argv[1], "host") == 0)
    return make_host(argv[2]);
  if (argc > 3 && strcmp(argv[1], "on") == 0)
    return run_and_wait(argv + 2);
  fputs("usage: labguest host NAME\n"
        "       labguest on HOST [--user NAME] [--directory DIR] [--set NAME=VALUE]... -- COMMAND...\n",
        stderr);
  return 2;
}
