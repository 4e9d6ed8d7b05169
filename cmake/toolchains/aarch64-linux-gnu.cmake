# Cross-compiles for aarch64 in a root of scripts/build-arm64: Debian's cross compiler, with the arm64 libraries beside
# those of the machine itself. The emulator runs the unit-test programs, which ninja asks for their tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/bin/qemu-aarch64)
# find_package and find_library also look below lib/x86_64-linux-gnu; these come first and have all that is needed.
set(CMAKE_FIND_ROOT_PATH /)
# pkg-config itself has no target: only its search path decides.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
