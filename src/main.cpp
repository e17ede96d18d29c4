#include "cli/app.hpp"

int main(int argc, char** argv) {
  return sharefs::cli::main(argc, argv);
}
