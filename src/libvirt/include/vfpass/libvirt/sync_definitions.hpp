#pragma once

#include <string>

namespace vfpass::libvirt {

/// Returns once the definitions of this connection's domains would survive a power failure. libvirt
/// syncs the new file of a definition and renames it, but does not sync the directory
/// (virFileRewrite in src/util/virfile.c), so that the old definition may come back. Does nothing
/// for a connection other than qemu:///system. Throws if the directory cannot be synced.
void syncDefinitions(const std::string& uri);

}  // namespace vfpass::libvirt
