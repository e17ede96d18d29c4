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
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "nfs-common")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "nfs-kernel-server, shfmt")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
