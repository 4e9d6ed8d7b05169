# Copies systemd units and replaces the directory of vfpass in their templates. Also a script of its own, for a test:
# cmake -DCMAKE_INSTALL_FULL_SBINDIR=/opt/sbin -DFROM=packaging/systemd -DTO=DIRECTORY -P ConfigureUnits.cmake
# @verify_sandbox@ is the text of the file verify-sandbox, which the units that verify share.
function(vfpass_configure_units from to)
  file(READ ${from}/verify-sandbox verify_sandbox)
  string(STRIP "${verify_sandbox}" verify_sandbox)
  if(NOT CMAKE_SCRIPT_MODE_FILE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from}/verify-sandbox)
  endif()
  file(GLOB units RELATIVE ${from} ${from}/vfpass-*)
  foreach(unit ${units})
    string(REGEX REPLACE "[.]in$" "" name ${unit})
    configure_file(${from}/${unit} ${to}/${name} @ONLY)
  endforeach()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  vfpass_configure_units(${FROM} ${TO})
endif()
