# A stage is a directory below src/, the caller's or the one that IN names, and one static library. It can include
# include/vfpass/ (the vocabulary), its own directory, and the public headers of the stages that it links. The target's
# property STAGE_FOLDER is that directory. FOLDERS names subdirectories whose sources belong to the stage; EXCEPT names
# files that do not. With VFPASS_UNITY several sources of a stage are compiled as one, which saves most of the time for
# common headers. So names in the anonymous namespaces of one stage are unique. SEPARATE_OBJECTS prevents that for a stage
# of which tests/crash replaces some sources at link time.
function(vfpass_stage name)
  cmake_parse_arguments(STAGE "SEPARATE_OBJECTS" "IN" "LINKS;FOLDERS;EXCEPT" ${ARGN})
  set(stage_folder ${CMAKE_CURRENT_SOURCE_DIR})
  if(STAGE_IN)
    string(APPEND stage_folder /${STAGE_IN})
  endif()
  set(patterns ${stage_folder}/*.cpp)
  foreach(folder ${STAGE_FOLDERS})
    list(APPEND patterns ${stage_folder}/${folder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  foreach(file ${STAGE_EXCEPT})
    list(REMOVE_ITEM sources ${stage_folder}/${file})
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_library(vfpass_${name} STATIC ${sources})
  if(VFPASS_UNITY AND NOT STAGE_SEPARATE_OBJECTS)
    set_target_properties(vfpass_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  target_include_directories(vfpass_${name}
    PUBLIC ${PROJECT_SOURCE_DIR}/include ${stage_folder}/include
    PRIVATE ${stage_folder})
  set_target_properties(vfpass_${name} PROPERTIES STAGE_FOLDER ${stage_folder})
  target_link_libraries(vfpass_${name} PUBLIC vfpass_options ${STAGE_LINKS})
endfunction()

# Everything that the unit tests run, and nothing else: with fuzz-targets, the sanitized build needs no more.
add_custom_target(unit-tests)

# What the tests `unit.NAME.*` run: CI builds only some of the programs with sanitizers
# (scripts/select-sanitized).
function(vfpass_tests_run name)
  if(NOT TARGET tests-${name})
    add_custom_target(tests-${name})
    add_dependencies(unit-tests tests-${name})
  endif()
  add_dependencies(tests-${name} ${ARGN})
endfunction()

# Tests are discovered while the rest is still being built: on a busy machine, above all with sanitizers, the program
# may take longer than CMake's default timeout of 5 seconds, which would fail the build.
function(vfpass_discover_tests program name)
  vfpass_tests_run(${name} ${program})
  gtest_discover_tests(${program} TEST_PREFIX "unit.${name}." DISCOVERY_TIMEOUT 300
    PROPERTIES LABELS unit)
endfunction()

# Unit tests of one stage: tests/unit/NAME/*.cpp, label `unit`. They may include private headers. With VFPASS_UNITY
# several of the sources are compiled as one, like those of a stage: most of the time is for the common headers.
function(vfpass_unit_tests name)
  cmake_parse_arguments(UNIT "" "" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(unit-${name} ${sources})
  target_include_directories(unit-${name} PRIVATE
    $<TARGET_PROPERTY:vfpass_${name},STAGE_FOLDER>)
  target_link_libraries(unit-${name} PRIVATE unit-common vfpass_${name} ${UNIT_LINKS})
  target_precompile_headers(unit-${name} REUSE_FROM unit-common)
  if(VFPASS_UNITY)
    set_target_properties(unit-${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  vfpass_discover_tests(unit-${name} ${name})
endfunction()
