# All dependencies are packages of Debian 12 and 13; scripts/packages lists them.
find_package(PkgConfig REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(pugixml REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
# GCC 12 at -O2 wrongly reports a null pointer in the vector growth that CLI11's split() inlines. This follows the
# options of our own code, because stages link CLI11 last.
target_compile_options(CLI11::CLI11 INTERFACE -Wno-null-dereference)
find_package(spdlog REQUIRED)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(LIBNL REQUIRED IMPORTED_TARGET libnl-3.0 libnl-genl-3.0)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
# Opened on demand: no program links these.
pkg_check_modules(LIBVIRT REQUIRED libvirt libvirt-qemu)
pkg_check_modules(LIBPCI REQUIRED libpci)
pkg_check_modules(LIBARCHIVE REQUIRED libarchive)

# The static library: each shared library costs every command time (docs/performance.md).
find_library(YAML_ARCHIVE libyaml-cpp.a)
add_library(vfpass_yaml INTERFACE)
if(YAML_ARCHIVE)
  target_include_directories(vfpass_yaml SYSTEM INTERFACE ${YAML_CPP_INCLUDE_DIR})
  target_link_libraries(vfpass_yaml INTERFACE ${YAML_ARCHIVE})
else()
  target_link_libraries(vfpass_yaml INTERFACE yaml-cpp)
endif()

# Only headers of spdlog and fmt, for the same reason. spdlog's own target for that links fmt's shared library.
add_library(vfpass_spdlog INTERFACE)
target_include_directories(vfpass_spdlog SYSTEM INTERFACE
  $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(vfpass_spdlog INTERFACE
  $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_COMPILE_DEFINITIONS>)
target_link_libraries(vfpass_spdlog INTERFACE Threads::Threads $<TARGET_NAME_IF_EXISTS:fmt::fmt-header-only>)
