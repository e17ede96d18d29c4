# sharefs_room(NAME DIRECTORY DEPENDS ... [PRIVATE_DEPENDS ...])
# One static library `sharefs_NAME` of all *.cpp in and below DIRECTORY: adding to a room means adding a file, and no more.
# External headers are SYSTEM, so that only our own code has to be free of warnings.
function(sharefs_room name directory)
  cmake_parse_arguments(room "" "" "DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${directory}/*.cpp)
  if(NOT sources)
    add_library(sharefs_${name} INTERFACE)
    target_link_libraries(sharefs_${name} INTERFACE sharefs_settings ${room_DEPENDS} Threads::Threads)
    return()
  endif()
  add_library(sharefs_${name} STATIC ${sources})
  target_link_libraries(sharefs_${name}
    PUBLIC sharefs_settings ${room_DEPENDS} Threads::Threads
    PRIVATE sharefs_warnings ${room_PRIVATE_DEPENDS})
  target_compile_options(sharefs_${name} PRIVATE ${SHAREFS_ROOM_OPTIONS})
endfunction()
