/* Preloaded into a program, writes the options that it hands to getopt_long(3) to the file $GETOPT_TABLE and ends it:
 * a line "short LETTERS", then a line "long NAME HAS_ARG VALUE" per option. */
#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static void write_table(const char *letters, const struct option *options) {
  const char *path = getenv("GETOPT_TABLE");
  FILE *out = path ? fopen(path, "w") : NULL;
  if (!out)
    _Exit(3);
  fputs("short ", out);
  for (; *letters; ++letters)
    if (isgraph((unsigned char)*letters)) /* env(1) has white space among them, for #! lines */
      fputc(*letters, out);
  fputc('\n', out);
  for (; options && options->name; ++options)
    fprintf(out, "long %s %d %d\n", options->name, options->has_arg, options->val);
  fclose(out);
  _Exit(0);
}

int getopt_long(int count, char *const words[], const char *letters, const struct option *options, int *index) {
  (void)count, (void)words, (void)index;
  write_table(letters, options);
  return -1;
}

int getopt(int count, char *const words[], const char *letters) {
  (void)count, (void)words;
  write_table(letters, NULL);
  return -1;
}
