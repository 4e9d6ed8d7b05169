# The files that installing adds to the programs, and those that packages add to them. All are made at configuration.
set(package_files ${PROJECT_BINARY_DIR}/packaging)
set(packaging ${PROJECT_SOURCE_DIR}/packaging)

include(ConfigureUnits)
vfpass_configure_units(${packaging}/systemd ${package_files}/systemd)
install(DIRECTORY ${package_files}/systemd/ DESTINATION lib/systemd/system)
# The rule is not active before the administrator links it; without it, the file of systemd-networkd matches nothing.
install(FILES ${packaging}/network/95-vfpass-vf.rules DESTINATION ${CMAKE_INSTALL_DATADIR}/vfpass/network)
install(FILES ${packaging}/network/05-vfpass-vf.network DESTINATION lib/systemd/network)
install(FILES ${packaging}/sysusers.conf DESTINATION lib/sysusers.d RENAME vfpass.conf)
install(FILES ${packaging}/tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME vfpass.conf)
# systemd reads it into its database: with a trigger of its package on Debian, a file trigger with rpm.
install(FILES ${packaging}/vfpass.catalog DESTINATION lib/systemd/catalog)
install(PROGRAMS ${packaging}/removed-hook DESTINATION ${CMAKE_INSTALL_DATADIR}/vfpass)
# Editors read them (the first line of each example).
install(FILES docs/schema/mapping.schema.json docs/schema/host.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/vfpass)
install(FILES completion/vfpass.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME vfpass)
install(FILES completion/vfpass.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
# The first for zsh as Debian builds it, the second for all others.
install(FILES completion/_vfpass DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES completion/_vfpass DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(DIRECTORY examples contrib DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
# Where Ansible looks for collections by default (docs/fleet.md). The controller needs no vfpass, so it is not in its package.
install(DIRECTORY contrib/ansible/ansible_collections DESTINATION ${CMAKE_INSTALL_DATADIR}/ansible/collections COMPONENT doc
  PATTERN __pycache__ EXCLUDE)

# vfpass reads /etc/vfpass whatever the prefix is, but only a package may create directories in /etc.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  install(DIRECTORY DESTINATION /etc/vfpass/vms)
  install(DIRECTORY DESTINATION /etc/libvirt/hooks/qemu.d)
endif()

# string(TIMESTAMP) respects SOURCE_DATE_EPOCH.
string(TIMESTAMP changelog_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(debian_version ${VFPASS_PACKAGE_VERSION}-1)
file(READ ${packaging}/maintainer.sh maintainer_functions)
# In debian/copyright each line begins with a space, and an empty one is a dot.
file(READ LICENSE license_text)
string(REGEX REPLACE "^.*(Permission is.*[^\n])\n*$" "\\1" license_text "${license_text}")
string(REPLACE "\n\n" "\n.\n" license_text "\n${license_text}")
string(REPLACE "\n" "\n " license_text "${license_text}")
string(SUBSTRING "${license_text}" 1 -1 license_text)

foreach(script postinst prerm postrm)
  configure_file(${packaging}/debian/${script}.in ${package_files}/${script} @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
foreach(script post preun postun)
  configure_file(${packaging}/rpm/${script}.in ${package_files}/rpm-${script} @ONLY)
endforeach()
configure_file(${packaging}/debian/copyright.in ${package_files}/copyright @ONLY)
configure_file(${packaging}/debian/changelog.in ${package_files}/changelog.Debian @ONLY)
configure_file(CHANGELOG.md ${package_files}/changelog COPYONLY)
foreach(file changelog changelog.Debian)
  execute_process(COMMAND gzip -9nc ${package_files}/${file} OUTPUT_FILE ${package_files}/${file}.gz
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()

# Each package has these files in the directory of its name.
set(component_vfpass vfpass)
set(component_guest vfpass-guest)
set(component_doc vfpass-doc)
foreach(component vfpass guest doc)
  set(package ${component_${component}})
  install(FILES ${package_files}/copyright ${package_files}/changelog.gz ${package_files}/changelog.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
  if(EXISTS ${packaging}/debian/${package}.overrides)
    install(FILES ${packaging}/debian/${package}.overrides
      DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides RENAME ${package} COMPONENT ${component})
  endif()
endforeach()
