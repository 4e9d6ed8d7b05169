# One static library per folder of src/. A stage sees include/vfpass/ (the vocabulary), its own
# folder, and the public headers of exactly the stages that it links: the link line is the law.
# FOLDERS names subfolders whose sources belong to the stage.
function(vfpass_stage name)
  cmake_parse_arguments(STAGE "" "" "LINKS;FOLDERS" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(folder ${STAGE_FOLDERS})
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(NOT sources)
    return()
  endif()
  add_library(vfpass_${name} STATIC ${sources})
  target_include_directories(vfpass_${name}
    PUBLIC ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR}/include
    PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(vfpass_${name} PUBLIC vfpass_options ${STAGE_LINKS})
endfunction()

# The program is asked for its tests while everything else is still being built: it may wait longer
# for a processor than CMake's 5 seconds, above all with sanitizers, and that would fail the build.
function(vfpass_discover_tests program prefix)
  gtest_discover_tests(${program} TEST_PREFIX "${prefix}." DISCOVERY_TIMEOUT 300
    PROPERTIES LABELS unit)
endfunction()

# Unit tests of one stage: tests/unit/NAME/*.cpp, label `unit`. They may include private headers.
function(vfpass_unit_tests name)
  cmake_parse_arguments(UNIT "" "" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(unit-${name} ${sources})
  target_include_directories(unit-${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/src/${name} ${PROJECT_SOURCE_DIR}/tests)
  # Tests are compiled far more often than they run.
  target_compile_options(unit-${name} PRIVATE -O0 -g0 -U_FORTIFY_SOURCE)
  target_compile_definitions(unit-${name} PRIVATE
    VFPASS_SOURCE_DIR="${PROJECT_SOURCE_DIR}" VFPASS_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(unit-${name} PRIVATE vfpass_${name} ${UNIT_LINKS}
    GTest::gmock GTest::gtest_main)
  target_precompile_headers(unit-${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  vfpass_discover_tests(unit-${name} unit.${name})
endfunction()
