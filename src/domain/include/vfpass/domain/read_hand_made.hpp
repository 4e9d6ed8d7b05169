#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfpass/imported_mapping.hpp"

namespace vfpass::domain {

/// The devices of the host in a domain XML, in document order, then those of `<qemu:commandline>`.
/// Includes those with our aliases, and `<interface type='network'>` of every network. Throws Error
/// (ExitCode::badInput) if the text is not a domain.
std::vector<HandMadeDevice> readHandMade(std::string_view xml);

/// A program that creates and changes domains by itself, and how the domain shows it.
struct ManagingTool {
  std::string name;      ///< `OpenStack`
  std::string evidence;  ///< `metadata of http://openstack.org/xmlns/libvirt/nova/1.1`
};

/// The program that manages this domain, or several in one name (`OpenStack and KubeVirt`): its
/// metadata has the program's namespace, or the SMBIOS tables name the program. Empty names if
/// there is none. Throws Error (ExitCode::badInput) if the text is not a domain.
ManagingTool managingTool(std::string_view xml);

}  // namespace vfpass::domain
