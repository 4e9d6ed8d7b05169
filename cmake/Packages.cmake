# Packages: `cpack -G DEB` and `cpack -G RPM` in the build directory; scripts/release does both. Each install component is a
# package: `vfpass` (whatever names no component), `guest` and `doc`.
set(VFPASS_MAINTAINER "vfpass maintainers <maintainers@vfpass.org>" CACHE STRING "Maintainer of the packages")

include(PackageFiles)

set(CPACK_PACKAGE_NAME vfpass)
set(CPACK_PACKAGE_VERSION ${VFPASS_PACKAGE_VERSION})
set(CPACK_PACKAGE_VENDOR vfpass)
# CPack's own default, which it omits. It would begin the description of every package with any other text.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${CMAKE_PROJECT_NAME} built using CMake")
set(CPACK_PACKAGE_CONTACT ${VFPASS_MAINTAINER})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL vfpass guest doc)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
  WORLD_EXECUTE)
set(CPACK_SOURCE_GENERATOR "")
# The time of every file, so that two builds of one commit are equal.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/SetFileTimes.cmake)

set(vfpass_summary "SR-IOV virtual functions of ConnectX cards for libvirt guests")
set(guest_summary "program with which vfpass verifies RDMA inside a guest")
set(doc_summary "documentation and Ansible collection of vfpass")
set(CPACK_COMPONENT_VFPASS_DESCRIPTION
  "vfpass creates, configures and leases SR-IOV virtual functions of ConnectX
cards for libvirt/KVM guests, so that RDMA and GPUDirect RDMA work inside
them. A qemu hook checks and prepares the devices at every start.")
set(CPACK_COMPONENT_GUEST_DESCRIPTION
  "vfpass-probe reports RDMA devices and GPUs of a guest and transfers data
with every byte checked. vfpass copies it into guests; this package is needed
there only where programs of the guest agent are confined.")
set(CPACK_COMPONENT_DOC_DESCRIPTION
  "Documentation of each subject, JSON schemas of mappings, host policy and
output, the changelog, and the collection vfpass.vfpass, with which Ansible
deploys and checks fleets of hosts.")

include(DebianPackages)
include(RpmPackages)
include(CPack)
