#include "helper/privilege.hpp"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "vfpass/base/text.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {
namespace {

bool hasCapability(unsigned number) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  return ::syscall(SYS_capget, &header, sets.data()) == 0 &&
         (sets[number / 32].effective >> (number % 32) & 1U) != 0;
}

// Only the initial user namespace maps every user to itself (user_namespaces(7)).
bool inInitialUserNamespace() {
  const std::string map = Root().readText("proc/self/uid_map").value_or("");
  return map.ends_with(" 4294967295");
}

}  // namespace

bool mayConfigureLinks() { return hasCapability(CAP_NET_ADMIN) && inInitialUserNamespace(); }

}  // namespace vfpass::host
