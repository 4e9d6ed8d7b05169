#include <gmock/gmock.h>

#include <cerrno>

#include "rdma/endpoint.hpp"

namespace vfpass::probe {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A device whose rdma-core and driver answer ibv_query_device_ex() with these capabilities.
template <std::uint64_t capabilities>
verbs_context deviceWithPaging() {
  verbs_context device{};
  device.sz = sizeof device;
  device.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  device.query_device_ex = [](ibv_context*, const ibv_query_device_ex_input*,
                              ibv_device_attr_ex* attributes, std::size_t) {
    attributes->odp_caps.general_caps = capabilities;
    return 0;
  };
  return device;
}

TEST(DmaBufRefusal, NamesMissingOnDemandPaging) {
  verbs_context device = deviceWithPaging<0>();
  EXPECT_THAT(dmaBufRefusal(device.context, EOPNOTSUPP),
              HasSubstr("; it offers no on-demand paging (ODP), without which mlx5_ib"));
}

TEST(DmaBufRefusal, OtherErrorsHaveOtherReasons) {
  verbs_context device = deviceWithPaging<0>();
  EXPECT_THAT(dmaBufRefusal(device.context, EFAULT), Not(HasSubstr("paging")));
}

TEST(DmaBufRefusal, DevicesWithPagingHaveAnotherReason) {
  verbs_context device = deviceWithPaging<IBV_ODP_SUPPORT>();
  EXPECT_THAT(dmaBufRefusal(device.context, EOPNOTSUPP), Not(HasSubstr("paging")));
}

TEST(DmaBufRefusal, OldRdmaCoreDoesNotSay) {
  ibv_context device{};
  EXPECT_EQ(dmaBufRefusal(device, EOPNOTSUPP).find("paging"), std::string::npos);
}

}  // namespace
}  // namespace vfpass::probe
