# What only the Debian packages have.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${VFPASS_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(debian_version ${VFPASS_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

set(CPACK_DEBIAN_VFPASS_PACKAGE_NAME vfpass)
set(CPACK_DEBIAN_VFPASS_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_VFPASS_DESCRIPTION "${vfpass_summary}\n${CPACK_COMPONENT_VFPASS_DESCRIPTION}")
# vfpass copies the probe of its own version into guests. systemd creates its group and directories.
# dpkg-shlibdeps does not see libvirt, libpci and libarchive, which are opened at run time.
set(CPACK_DEBIAN_VFPASS_PACKAGE_DEPENDS
  "vfpass-guest (= ${debian_version}), kmod, libarchive13t64 | libarchive13, libpci3, libvirt0, systemd")
set(CPACK_DEBIAN_VFPASS_PACKAGE_RECOMMENDS "libvirt-daemon-system, pci.ids, qemu-system-x86")
set(CPACK_DEBIAN_VFPASS_PACKAGE_SUGGESTS "vfpass-doc, mstflint, openssh-client")
set(CPACK_DEBIAN_VFPASS_PACKAGE_CONTROL_EXTRA ${package_files}/postinst ${package_files}/prerm ${package_files}/postrm)
set(CPACK_DEBIAN_VFPASS_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_GUEST_PACKAGE_NAME vfpass-guest)
set(CPACK_DEBIAN_GUEST_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_GUEST_DESCRIPTION "${guest_summary}\n${CPACK_COMPONENT_GUEST_DESCRIPTION}")
# Opened at run time. A host without RDMA only copies the program.
set(CPACK_DEBIAN_GUEST_PACKAGE_SUGGESTS ibverbs-providers)

set(CPACK_DEBIAN_DOC_PACKAGE_NAME vfpass-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DOC_DESCRIPTION "${doc_summary}\n${CPACK_COMPONENT_DOC_DESCRIPTION}")
