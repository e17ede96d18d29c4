# `cpack --config build/release/CPackConfig.cmake` makes a Debian package of what `cmake --install` installs. Its
# dependencies are read off the binary; what sharefs calls as programs is suggested, for not every host needs it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sharefs)
set(CPACK_PACKAGE_CONTACT "the sharefs developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "nfs-common, squashfs-tools")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "nfs-kernel-server, openssh-client, rsync, squashfuse, fuse3")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
foreach(script postinst prerm postrm)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/deb/${script})
endforeach()
# What other programs read. Nothing is enabled by the package: `systemctl enable --now sharefs-watch` is for who wants it.
# The unit names its program by the prefix that is installed to, which a package or `cmake --install --prefix` may change.
set(unit_prefix ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/systemd/sharefs-watch.service.in ${CMAKE_BINARY_DIR}/sharefs-watch.service @ONLY)
install(CODE "set(CMAKE_INSTALL_BINDIR ${CMAKE_INSTALL_BINDIR})
set(CMAKE_INSTALL_DOCDIR ${CMAKE_INSTALL_DOCDIR})
set(unit_prefix \${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/systemd/sharefs-watch.service.in ${CMAKE_BINARY_DIR}/installed/sharefs-watch.service @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/installed/sharefs-watch.service DESTINATION lib/systemd/system)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/tmpfiles.d/sharefs.conf DESTINATION lib/tmpfiles.d)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/prometheus/sharefs.rules.yml ${CMAKE_CURRENT_LIST_DIR}/prometheus/sharefs.dashboard.json
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/prometheus)
install(PROGRAMS ${CMAKE_CURRENT_LIST_DIR}/slurm/healthcheck.sh ${CMAKE_CURRENT_LIST_DIR}/slurm/prolog.sh
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/slurm)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/slurm/sharefs.nhc DESTINATION ${CMAKE_INSTALL_DOCDIR}/slurm)
install(PROGRAMS ${CMAKE_CURRENT_LIST_DIR}/node-problem-detector/check-sharefs.sh
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/node-problem-detector)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/node-problem-detector/sharefs-monitor.json
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/node-problem-detector)
install(DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/ansible DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The guard, which `sharefs run` puts in front of PYTHONPATH, and the same as a wheel for environments.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/cachefix/guard/ DESTINATION ${CMAKE_INSTALL_DATADIR}/sharefs/guard
        FILES_MATCHING PATTERN "*.py" PATTERN "*.txt" PATTERN __pycache__ EXCLUDE)
find_package(Python3 3.6 REQUIRED COMPONENTS Interpreter)
set(guard_wheel ${CMAKE_BINARY_DIR}/sharefs_guard-${PROJECT_VERSION}-py3-none-any.whl)
file(GLOB_RECURSE guard_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cachefix/guard/sharefs_guard/*.py
     ${CMAKE_SOURCE_DIR}/cachefix/guard/sharefs_guard/*.txt
     ${CMAKE_CURRENT_LIST_DIR}/wheel/*)
add_custom_command(OUTPUT ${guard_wheel} DEPENDS ${guard_sources}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/wheel/backend.py ${PROJECT_VERSION} ${CMAKE_BINARY_DIR})
add_custom_target(guard_wheel ALL DEPENDS ${guard_wheel})
install(FILES ${guard_wheel} DESTINATION ${CMAKE_INSTALL_DATADIR}/sharefs)
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/sharefs/site-packages DESTINATION ${CMAKE_INSTALL_DATADIR}/sharefs)
include(CPack)
