# Two INTERFACE targets that every target of the project links: how it is compiled, and what is an error.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(SHAREFS_WERROR "Treat warnings as errors" OFF)
set(SHAREFS_ROOM_OPTIONS "" CACHE STRING "Options for the program's own sources, not for those of tests")
set(SHAREFS_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, e.g. address,undefined")

add_library(sharefs_settings INTERFACE)
target_compile_features(sharefs_settings INTERFACE cxx_std_20)
target_include_directories(sharefs_settings INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(sharefs_settings INTERFACE _GNU_SOURCE SHAREFS_VERSION="${PROJECT_VERSION}")
if(SHAREFS_SANITIZE)
  target_compile_options(sharefs_settings INTERFACE -fsanitize=${SHAREFS_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(sharefs_settings INTERFACE -fsanitize=${SHAREFS_SANITIZE})
endif()

if(SHAREFS_FUZZ) # coverage feedback in all code, the fuzzer's main() only in its targets
  target_compile_options(sharefs_settings INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(sharefs_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What makes a fault of ours harder to use, as distributions build their packages. Sanitizers find more, and do not go with
# all of it. tests/layers/check_hardening.py reads the program that comes out.
if(NOT SHAREFS_SANITIZE AND NOT SHAREFS_FUZZ)
  target_compile_options(sharefs_settings INTERFACE -fPIE -fstack-protector-strong -fstack-clash-protection)
  # It needs an optimising compiler.
  list(APPEND SHAREFS_ROOM_OPTIONS $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=3>)
  target_compile_definitions(sharefs_settings INTERFACE _GLIBCXX_ASSERTIONS)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(sharefs_settings INTERFACE -fcf-protection)
  endif()
  target_link_options(sharefs_settings INTERFACE -pie LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()

add_library(sharefs_warnings INTERFACE)
target_compile_options(sharefs_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  # Once it optimises, g++ 12 takes `"text" + string` for an overlapping copy (GCC bug 105651), and the payload of an
  # empty optional in a copied variant for one that is read.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict$<SEMICOLON>-Wno-maybe-uninitialized>
  $<$<BOOL:${SHAREFS_WERROR}>:-Werror>)
