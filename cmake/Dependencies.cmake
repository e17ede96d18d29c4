# Debian's packages; docs/architecture.md gives the reason for each.
set(CMAKE_THREAD_PREFER_PTHREAD ON)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tl-expected REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
# Of OpenSSL only SHA-256 is used (src/sys/fs/sha256.cpp). FindOpenSSL would also want what the whole archive needs.
find_library(SHAREFS_LIBCRYPTO NAMES libcrypto.a crypto REQUIRED)
find_path(SHAREFS_DTL dtl/dtl.hpp REQUIRED) # headers only
find_package(PkgConfig REQUIRED)
pkg_check_modules(libutf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(libxxhash REQUIRED IMPORTED_TARGET libxxhash)

# Only the child that asks a server uses it: the archive, where there is one, is not loaded in front of every command.
find_library(SHAREFS_LIBNFS NAMES libnfs.a nfs REQUIRED)
# Since libnfs 6 the calls of its raw API are named rpc_NAME_task, before that rpc_NAME_async.
include(CheckCXXSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES ${SHAREFS_LIBNFS})
check_cxx_symbol_exists(rpc_null_task "nfsc/libnfs-zdr.h;nfsc/libnfs.h;nfsc/libnfs-raw.h" SHAREFS_LIBNFS_HAS_TASKS)
unset(CMAKE_REQUIRED_LIBRARIES)

# Loading shared libraries is most of what `sharefs run` adds to its command (tests/bench/startup.md).
option(SHAREFS_STATIC_LIBRARIES "Link statically what Debian has as archive or headers, all but libc" OFF)

# sharefs::NAME is TARGET, or the archive of the same library where that is wanted and installed.
function(sharefs_dependency name target)
  find_library(SHAREFS_ARCHIVE_${name} lib${name}.a)
  mark_as_advanced(SHAREFS_ARCHIVE_${name})
  add_library(dependency_${name} INTERFACE)
  if(SHAREFS_STATIC_LIBRARIES AND SHAREFS_ARCHIVE_${name})
    target_link_libraries(dependency_${name} INTERFACE ${SHAREFS_ARCHIVE_${name}})
  else()
    target_link_libraries(dependency_${name} INTERFACE ${target})
  endif()
  add_library(sharefs::${name} ALIAS dependency_${name})
endfunction()

sharefs_dependency(acl acl)
sharefs_dependency(crypto ${SHAREFS_LIBCRYPTO})
sharefs_dependency(nfs ${SHAREFS_LIBNFS})
sharefs_dependency(utf8proc PkgConfig::libutf8proc)
sharefs_dependency(xxhash PkgConfig::libxxhash)
sharefs_dependency(yaml-cpp yaml-cpp)
add_library(dependency_spdlog INTERFACE)
add_library(sharefs::spdlog ALIAS dependency_spdlog)
if(SHAREFS_STATIC_LIBRARIES)
  # Not libgcc: the static one looks for exceptions by _dl_find_object of glibc 2.35; every system has the shared one.
  target_link_options(sharefs_settings INTERFACE -static-libstdc++ LINKER:--as-needed)
  add_library(sharefs::fmt ALIAS fmt::fmt-header-only)
  # Not spdlog::spdlog_header_only, which links the shared fmt.
  target_compile_definitions(dependency_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
  target_link_libraries(dependency_spdlog INTERFACE fmt::fmt-header-only)
else()
  add_library(sharefs::fmt ALIAS fmt::fmt)
  target_link_libraries(dependency_spdlog INTERFACE spdlog::spdlog)
endif()
