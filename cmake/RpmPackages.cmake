# What only the rpm packages have. rpm finds the libraries that a program needs by itself.
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_GROUP "Applications/System")
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
# Otherwise CPack strips the first component's programs and makes packages of debug symbols.
set(CPACK_RPM_DEBUGINFO_PACKAGE OFF)
# The main package is the component `vfpass`: without this, CPack would append the component's name.
set(CPACK_RPM_MAIN_COMPONENT vfpass)
# No __os_install_post: rpm would strip the programs once more, differently from the Debian packages.
set(CPACK_RPM_SPEC_MORE_DEFINE "%define _build_id_links none
%define __os_install_post %{nil}
%define _buildhost vfpass
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1")
# Directories of other packages.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/sbin /usr/libexec /usr/lib/systemd /usr/lib/systemd/system /usr/lib/systemd/catalog
  /usr/lib/systemd/network
  /usr/lib/sysusers.d /usr/lib/tmpfiles.d /usr/share/doc /usr/share/man /usr/share/man/man1
  /usr/share/man/man5 /usr/share/man/man7 /usr/share/man/man8 /usr/share/ansible /usr/share/ansible/collections
  /usr/share/ansible/collections/ansible_collections /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/fish
  /usr/share/fish/vendor_completions.d /usr/share/zsh /usr/share/zsh/site-functions /usr/share/zsh/vendor-completions /etc/libvirt /etc/libvirt/hooks)

# What only Debian uses.
foreach(component VFPASS GUEST DOC)
  string(TOLOWER vfpass-${component} package)
  string(REPLACE vfpass-vfpass vfpass package ${package})
  set(CPACK_RPM_${component}_USER_FILELIST "%exclude /usr/share/lintian" "%exclude /usr/share/lintian/overrides"
    "%exclude /usr/share/lintian/overrides/${package}" "%exclude /usr/share/doc/${package}/changelog.Debian.gz")
endforeach()

set(CPACK_RPM_VFPASS_PACKAGE_SUMMARY ${vfpass_summary})
set(CPACK_RPM_VFPASS_PACKAGE_DESCRIPTION ${CPACK_COMPONENT_VFPASS_DESCRIPTION})
# Nor does rpm see libvirt, libpci and libarchive, which are opened at run time.
set(CPACK_RPM_VFPASS_PACKAGE_REQUIRES "vfpass-guest = ${VFPASS_PACKAGE_VERSION}-${CPACK_RPM_PACKAGE_RELEASE}, kmod, systemd, \
libarchive.so.13()(64bit), libpci.so.3()(64bit), libvirt.so.0()(64bit), libvirt-qemu.so.0()(64bit)")
set(CPACK_RPM_VFPASS_POST_INSTALL_SCRIPT_FILE ${package_files}/rpm-post)
set(CPACK_RPM_VFPASS_PRE_UNINSTALL_SCRIPT_FILE ${package_files}/rpm-preun)
set(CPACK_RPM_VFPASS_POST_UNINSTALL_SCRIPT_FILE ${package_files}/rpm-postun)

set(CPACK_RPM_GUEST_PACKAGE_NAME vfpass-guest)
set(CPACK_RPM_GUEST_PACKAGE_SUMMARY ${guest_summary})
set(CPACK_RPM_GUEST_PACKAGE_DESCRIPTION ${CPACK_COMPONENT_GUEST_DESCRIPTION})

set(CPACK_RPM_DOC_PACKAGE_NAME vfpass-doc)
set(CPACK_RPM_DOC_PACKAGE_SUMMARY ${doc_summary})
set(CPACK_RPM_DOC_PACKAGE_ARCHITECTURE noarch)
set(CPACK_RPM_DOC_PACKAGE_DESCRIPTION ${CPACK_COMPONENT_DOC_DESCRIPTION})
