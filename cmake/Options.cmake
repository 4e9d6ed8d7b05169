# Flags for our own code; third-party headers are included as system headers. Only the development presets
# (CMakePresets.json) make warnings errors: a user's newer compiler may have warnings that ours lacks.
add_library(vfpass_options INTERFACE)
target_compile_options(vfpass_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
    -Woverloaded-virtual -Wnull-dereference -fstack-protector-strong>)
target_compile_definitions(vfpass_options INTERFACE
  $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
# GCC 12 wrongly reports overlapping copies in std::string's inlined operator+ and insert() (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(vfpass_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
# The programs of tests/fuzz add libFuzzer's main(). -O1: without optimization, they run at half the speed.
if(VFPASS_FUZZ)
  set(VFPASS_SANITIZE ON)
  target_compile_options(vfpass_options INTERFACE -fsanitize=fuzzer-no-link -O1 -gline-tables-only)
endif()
# Clang's counters only: sanitizers would triple the build time and add branches that no input takes.
if(VFPASS_COVERAGE)
  target_compile_options(vfpass_options INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(vfpass_options INTERFACE -fprofile-instr-generate)
endif()
if(VFPASS_SANITIZE)
  target_compile_options(vfpass_options INTERFACE -fsanitize=address,undefined
    -fno-sanitize-recover=all -fno-omit-frame-pointer -U_FORTIFY_SOURCE)
  target_link_options(vfpass_options INTERFACE -fsanitize=address,undefined)
endif()
