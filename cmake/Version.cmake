# The only place of the version number: project() of vfpass and of the probe, which also builds on its own.
set(VFPASS_RELEASE 0.1.0)
# The version of packages: scripts/release appends the commit where HEAD is no release.
set(VFPASS_PACKAGE_VERSION ${VFPASS_RELEASE} CACHE STRING "Version of the packages")
