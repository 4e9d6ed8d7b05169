# How tests/lab/CMakeLists.txt declares the tests.

# vfpass_lab_test(NAME SECONDS [MACHINE name] [GUESTS name...] [NOT_ON "release: reason"...] [ENOUGH "reason"]
#                 [NEEDS name...] [SCRIPT name] [ARGUMENTS word...] [OPTIONS word...])
# boots the host under test once and runs tests/lab/NAME.sh in it. If the lab cannot boot, the test fails.
#   SECONDS    timeout of lab/run
#   MACHINE    a file in lab/machines (default: connectx)
#   GUESTS     the guests that the test starts: busybox (the default), busybox-rdma, busybox-gpu, a real guest's name, or none
#   NOT_ON     releases where the test cannot run; scripts/test-matrix shows the reason instead
#   ENOUGH     why the release on which CI runs it is enough; scripts/test-matrix shows it for others without a run
#   NEEDS      optional parts of lab/prepare, declared by vfpass_lab_need, which are made before the test
#   SCRIPT     a script other than NAME.sh, with its ARGUMENTS: one script may serve several guests
#   OPTIONS    further options of lab/run
# Each lab uses one core (lab/run), so as many labs run in parallel as the machine has cores.
function(vfpass_lab_test name seconds)
  cmake_parse_arguments(PARSE_ARGV 2 test "" "MACHINE;SCRIPT;GROUP;STATE;ENOUGH" "GUESTS;NOT_ON;NEEDS;ARGUMENTS;OPTIONS")
  vfpass_lab_defaults()
  vfpass_declare_lab_test()
  if(vfpass_lab_part STREQUAL long AND NOT VFPASS_ALL_TESTS)
    return()
  endif()
  set(options ${test_OPTIONS})
  if(test_STATE)
    list(APPEND options --state ${test_STATE})
  endif()
  add_test(NAME lab.${name}
    COMMAND ${PROJECT_SOURCE_DIR}/lab/run --timeout ${seconds} --machine ${test_MACHINE} ${options}
      ${CMAKE_CURRENT_SOURCE_DIR}/${test_SCRIPT}.sh ${test_ARGUMENTS})
  math(EXPR limit "${seconds} + 320")
  set_tests_properties(lab.${name} PROPERTIES LABELS "${test_LABELS}" TIMEOUT ${limit})
  if(test_NEEDS)
    set_tests_properties(lab.${name} PROPERTIES FIXTURES_REQUIRED "${test_NEEDS}")
  endif()
endfunction()

# vfpass_lab_need(NAME SECONDS OPTION...): declares what `lab/prepare OPTION...` makes, for NEEDS, and how long that takes. The
# test's timeout is three times as long.
function(vfpass_lab_need name seconds)
  list(JOIN ARGN " " options)
  set_property(GLOBAL APPEND_STRING PROPERTY vfpass_lab_needs "${name}\t${seconds}\t${options}\n")
  if(NOT VFPASS_ALL_TESTS)
    return()
  endif()
  math(EXPR limit "3 * ${seconds}")
  add_test(NAME lab.prepare_${name} COMMAND ${PROJECT_SOURCE_DIR}/lab/prepare ${ARGN})
  set_tests_properties(lab.prepare_${name} PROPERTIES
    LABELS "lab;long" RUN_SERIAL ON TIMEOUT ${limit} FIXTURES_SETUP ${name})
endfunction()

# vfpass_lab_test_across_reboot(BEFORE AFTER SECONDS [MACHINE_AFTER name] [as vfpass_lab_test...])
# declares two boots with a power cut between them. A directory serves as the disk that both boots use.
function(vfpass_lab_test_across_reboot before after seconds)
  cmake_parse_arguments(PARSE_ARGV 3 pair "" "MACHINE;MACHINE_AFTER" "")
  foreach(boot MACHINE MACHINE_AFTER)
    set(default ${pair_MACHINE} connectx)
    if(NOT pair_${boot})
      list(GET default 0 pair_${boot})
    endif()
  endforeach()
  set(disk ${CMAKE_CURRENT_BINARY_DIR}/${before}.disk)
  set(rest GROUP ${before} ${pair_UNPARSED_ARGUMENTS})
  vfpass_lab_test(${before} ${seconds} STATE ${disk} MACHINE ${pair_MACHINE} ${rest})
  vfpass_lab_test(${after} ${seconds} STATE ${disk} MACHINE ${pair_MACHINE_AFTER} ${rest})
  if(TEST lab.${before})
    vfpass_lab_reboot_fixtures(${before} ${after} ${disk})
  endif()
endfunction()

function(vfpass_lab_reboot_fixtures before after disk)
  add_test(NAME lab.${before}_disk COMMAND ${CMAKE_COMMAND} -DFOLDER=${disk}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/new_disk.cmake)
  get_test_property(lab.${before} LABELS labels)
  set_tests_properties(lab.${before}_disk PROPERTIES LABELS "${labels}" FIXTURES_SETUP ${before}_disk)
  set_property(TEST lab.${before} lab.${after} APPEND PROPERTY FIXTURES_REQUIRED ${before}_disk)
  set_property(TEST lab.${before} PROPERTY FIXTURES_SETUP ${before}_left)
  set_property(TEST lab.${after} APPEND PROPERTY FIXTURES_REQUIRED ${before}_left)
endfunction()

# Fills in the defaults and refuses unknown arguments.
macro(vfpass_lab_defaults)
  foreach(default MACHINE=connectx GUESTS=busybox SCRIPT=${name} GROUP=${name})
    string(REGEX MATCH "([A-Z]+)=(.*)" ignored ${default})
    if(NOT test_${CMAKE_MATCH_1})
      set(test_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
    endif()
  endforeach()
  set(test_LABELS lab)
  if(vfpass_lab_part STREQUAL long)
    list(APPEND test_LABELS long)
  endif()
  if(test_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lab test ${name}: ${test_UNPARSED_ARGUMENTS}: unknown argument: use MACHINE NAME or OPTIONS --option...")
  endif()
endmacro()

# One line for each test. Tabs separate columns, commas separate list items, bars separate reasons.
macro(vfpass_declare_lab_test)
  list(JOIN test_GUESTS "," guests)
  list(JOIN test_NOT_ON "|" not_on)
  list(JOIN test_NEEDS "," needs)
  list(JOIN test_ARGUMENTS " " arguments)
  list(JOIN test_OPTIONS " " options)
  string(JOIN "\t" line ${name} ${test_GROUP} ${vfpass_lab_part} ${seconds} ${test_MACHINE} ${guests}
    ${test_SCRIPT} "${arguments}" "${options}" "${needs}" "${not_on}"
    "${test_ENOUGH}")
  set_property(GLOBAL APPEND_STRING PROPERTY vfpass_lab_tests "${line}\n")
endmacro()

# vfpass_write_lab_tests(FILE): writes the declared tests to FILE and the needs to FILE-needs.
function(vfpass_write_lab_tests file)
  get_property(tests GLOBAL PROPERTY vfpass_lab_tests)
  get_property(needs GLOBAL PROPERTY vfpass_lab_needs)
  file(WRITE ${file}-needs "name\tseconds\toptions\n${needs}")
  file(WRITE ${file} "name\tgroup\tpart\tseconds\tmachine\tguests\tscript\targuments\toptions\tneeds\tnot_on\tenough\n${tests}")
endfunction()
