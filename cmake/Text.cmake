# sharefs_text(TARGET NAMESPACE NAME PATTERN)
# The files that fit PATTERN one behind the other, by name, as the string `NAMESPACE::NAME` of TARGET: a program for a
# child, or a text to print. clang takes 65,536 bytes.
function(sharefs_text target namespace name pattern)
  file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${pattern})
  list(SORT parts)
  set(content "")
  foreach(part IN LISTS parts)
    file(READ ${part} text)
    string(APPEND content "${text}")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${parts})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/texts/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
       "namespace @namespace@ {\nextern const char @name@[];\nconst char @name@[] = R\"text(@content@)text\";\n}\n")
  target_sources(${target} PRIVATE ${source})
endfunction()
