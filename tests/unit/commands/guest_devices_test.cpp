#include "guest_devices.hpp"

#include <gmock/gmock.h>

#include "vfpass/error.hpp"

namespace vfpass::commands {
namespace {

std::string remedyFor(const std::string& vm, const report::TopologyReport& host) {
  try {
    static_cast<void>(guestDevicesOf(vm, host));
  } catch (const Error& error) {
    return error.remedy();
  }
  return "nothing was thrown";
}

TEST(GuestDevices, VmWithoutLeaseHasCommandAndSuggestion) {
  report::TopologyReport host;
  host.leases.resize(1);
  host.leases[0].domainName = "train0";
  EXPECT_EQ(remedyFor("trian0", host), "run `vfpass attach trian0` first, or did you mean train0?");
  EXPECT_EQ(remedyFor("my vm", host), "run `vfpass attach 'my vm'` first");
}

}  // namespace
}  // namespace vfpass::commands
