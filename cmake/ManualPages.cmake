# The manual pages, from docs/manual and what the built program says of its options: `ninja manual`, and as part of everything.
find_program(PYTHON3 python3)
find_program(PANDOC pandoc)
foreach(program PYTHON3 PANDOC)
  if(NOT ${program})
    string(TOLOWER ${program} name)
    message(WARNING "${name} is missing: no manual pages are built or installed")
    return()
  endif()
endforeach()

set(manual_pages ${PROJECT_BINARY_DIR}/man)
file(GLOB manual_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/manual/*.md)
add_custom_command(OUTPUT ${manual_pages}/generated
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual_pages}
  COMMAND ${PYTHON3} -B ${PROJECT_SOURCE_DIR}/scripts/manual-pages --compress --documentation ${CMAKE_INSTALL_FULL_DOCDIR}
    $<TARGET_FILE:vfpass> ${PROJECT_SOURCE_DIR}/docs/manual ${manual_pages}
  COMMAND ${CMAKE_COMMAND} -E touch ${manual_pages}/generated
  DEPENDS vfpass ${PROJECT_SOURCE_DIR}/scripts/manual-pages ${PROJECT_SOURCE_DIR}/scripts/manual-pages.lua ${manual_sources}
    ${PROJECT_SOURCE_DIR}/docs/schema/mapping.schema.json ${PROJECT_SOURCE_DIR}/docs/schema/host.schema.json
  COMMENT "Generating the manual pages" VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual_pages}/generated)
install(DIRECTORY ${manual_pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR} FILES_MATCHING PATTERN "*.gz")
