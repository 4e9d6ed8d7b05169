#include <gmock/gmock.h>

#include <functional>

#include "fake_rdma_cm.hpp"
#include "rdma/rdma_cm_connection.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// One side with a fake device, `fake0`, and its address 10.99.0.1; the other has 10.99.0.2.
class RdmaCmTest : public testing::Test {
 protected:
  RdmaCmTest() {
    cm.verbs.port.link_layer = IBV_LINK_LAYER_ETHERNET;
    endpoint =
        std::make_unique<Endpoint>(cm.verbs.library, PortChoice{"fake0", 1, 0}, QueueSizes{});
  }

  static std::string errorOf(const std::function<void()>& work) {
    try {
      work();
      return "";
    } catch (const Error& error) {
      return std::string(error.what()) + " -> " + error.remedy();
    }
  }

  RdmaCmConnection connect() {
    return connectByRdmaCm({cm.verbs.library, cm.library}, *endpoint, path, {4711, "token"},
                           deadline);
  }
  RdmaCmListener listener() { return {{cm.verbs.library, cm.library}, path}; }
  std::string connectError() {
    return errorOf([this] { connect(); });
  }
  std::string acceptError() {
    return errorOf([this] { listener().accept(*endpoint, "token", deadline, {}); });
  }

  void resolved() {
    cm.happens({RDMA_CM_EVENT_ADDR_RESOLVED, 0, ""});
    cm.happens({RDMA_CM_EVENT_ROUTE_RESOLVED, 0, ""});
  }

  FakeRdmaCm cm;
  RdmaCmPath path{"fake0", *parseIpAddress("10.99.0.1/24"), *parseIpAddress("10.99.0.2")};
  Deadline deadline{std::chrono::seconds(20)};
  std::unique_ptr<Endpoint> endpoint;
};

TEST_F(RdmaCmTest, InitiatorBindsResolvesAndConnects) {
  resolved();
  cm.happens({RDMA_CM_EVENT_CONNECT_RESPONSE, 0, ""});
  {
    const RdmaCmConnection connection = connect();
    EXPECT_THAT(cm.calls,
                ElementsAre("bind", "resolve address", "resolve route", "connect", "establish"));
  }
  EXPECT_EQ(cm.calls.back(), "disconnect");
  EXPECT_EQ(cm.identifiers(), 0U);
  EXPECT_EQ(cm.sentData, "token");
  EXPECT_THAT(cm.states, ElementsAre(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS));
}

TEST_F(RdmaCmTest, QueuePairGetsAttributesOfConnection) {
  resolved();
  cm.happens({RDMA_CM_EVENT_CONNECT_RESPONSE, 0, ""});
  connect();
  ASSERT_EQ(cm.verbs.modified.size(), 3U);
  EXPECT_TRUE(cm.verbs.modified[0].qp_access_flags & IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(cm.verbs.modified[2].max_rd_atomic, 1) << "the device's limit, not the peer's 200";
  EXPECT_EQ(cm.verbs.masks.at(1), IBV_QP_STATE | IBV_QP_AV) << "without the kernel's own bits";
  EXPECT_EQ(endpoint->gidIndex(), 5);
}

TEST_F(RdmaCmTest, TargetAcceptsRequestWithToken) {
  cm.happens({RDMA_CM_EVENT_CONNECT_REQUEST, 0, "another"});
  cm.happens({RDMA_CM_EVENT_CONNECT_REQUEST, 0, "token"});
  cm.happens({RDMA_CM_EVENT_CONNECT_REQUEST, 0, "token"});
  cm.happens({RDMA_CM_EVENT_ESTABLISHED, 0, ""});
  {
    RdmaCmListener own = listener();
    EXPECT_EQ(own.port(), 4711);
    const RdmaCmConnection connection = own.accept(*endpoint, "token", deadline, {});
    EXPECT_THAT(cm.calls, ElementsAre("bind", "listen", "accept"));
  }
  EXPECT_THAT(cm.rejections, ElementsAre("vfpass-probe expects another connection",
                                         "vfpass-probe is already connected"));
  EXPECT_EQ(cm.verbs.modified.size(), 3U);
  EXPECT_EQ(cm.identifiers(), 0U);
}

TEST_F(RdmaCmTest, RefusesAddressOfOtherDevice) {
  cm.useOtherDevice();
  EXPECT_THAT(connectError(),
              AllOf(HasSubstr("rdma_cm uses fake1 for address 10.99.0.1, not fake0"),
                    HasSubstr("ip address show")));
  EXPECT_THAT(cm.calls, ElementsAre("bind")) << "nothing is sent through the other device";
  EXPECT_THAT(acceptError(), HasSubstr("rdma_cm uses fake1"));
}

TEST_F(RdmaCmTest, RejectsRequestThatArrivedOnOtherDevice) {
  cm.requestsOnOtherDevice();
  cm.happens({RDMA_CM_EVENT_CONNECT_REQUEST, 0, "token"});
  EXPECT_THAT(acceptError(), HasSubstr("rdma_cm uses fake1"));
  EXPECT_THAT(cm.rejections, ElementsAre("the request arrived on another RDMA device"));
  EXPECT_THAT(cm.verbs.modified, IsEmpty());
}

TEST_F(RdmaCmTest, NamesModuleWithoutDeviceFile) {
  cm.channelError = ENODEV;
  EXPECT_THAT(connectError(), AllOf(HasSubstr("cannot open /dev/infiniband/rdma_cm"),
                                    HasSubstr("modprobe rdma_ucm")));
  cm.channelError = EACCES;
  EXPECT_THAT(connectError(), HasSubstr("run as root"));
}

TEST_F(RdmaCmTest, ReportsAddressWithoutRdmaDevice) {
  cm.bindError = ENODEV;
  EXPECT_THAT(connectError(), AllOf(HasSubstr("cannot bind to 10.99.0.1 of fake0"),
                                    HasSubstr("ENODEV"), HasSubstr("ip address show")));
}

TEST_F(RdmaCmTest, ReportsAddressErrorAsCallOrEvent) {
  cm.resolveError = ENETUNREACH;
  EXPECT_THAT(connectError(), AllOf(HasSubstr("RDMA_CM_EVENT_ADDR_ERROR"), HasSubstr("ENETUNREACH"),
                                    HasSubstr("ip route get 10.99.0.2 from 10.99.0.1")));
  cm.resolveError = 0;
  cm.happens({RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, ""});
  EXPECT_THAT(connectError(), AllOf(HasSubstr("RDMA_CM_EVENT_ADDR_ERROR"), HasSubstr("ETIMEDOUT"),
                                    HasSubstr("ip neighbour show"), HasSubstr("arp_ignore 1")));
}

TEST_F(RdmaCmTest, ReportsRouteErrorAndUnreachable) {
  cm.happens({RDMA_CM_EVENT_ADDR_RESOLVED, 0, ""});
  cm.happens({RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL, ""});
  EXPECT_THAT(connectError(), AllOf(HasSubstr("RDMA_CM_EVENT_ROUTE_ERROR"), HasSubstr("sminfo")));
  resolved();
  cm.happens({RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ""});
  EXPECT_THAT(connectError(), AllOf(HasSubstr("RDMA_CM_EVENT_UNREACHABLE"), HasSubstr("4791")));
  EXPECT_THAT(cm.verbs.modified, IsEmpty());
}

TEST_F(RdmaCmTest, ReportsReasonOfRejection) {
  const auto rejected = [this](int reason, const std::string& privateData) {
    resolved();
    cm.happens({RDMA_CM_EVENT_REJECTED, reason, privateData});
    return connectError();
  };
  EXPECT_THAT(rejected(8, ""), AllOf(HasSubstr("RDMA_CM_EVENT_REJECTED: reason 8, invalid service"),
                                     HasSubstr("only the other side's VF has the address")));
  EXPECT_THAT(rejected(28, "not \x1b[2Jyou"),
              HasSubstr("reason 28, consumer defined: not \\x1b[2Jyou"));
  EXPECT_THAT(rejected(99, "x"), HasSubstr("RDMA_CM_EVENT_REJECTED: reason 99 ->"));
  EXPECT_EQ(cm.identifiers(), 0U);
}

TEST_F(RdmaCmTest, EndsAtDeadline) {
  deadline = Deadline(milliseconds(50));
  EXPECT_THAT(connectError(), HasSubstr("deadline expired while resolving the other side's"));
  EXPECT_THAT(acceptError(), HasSubstr("deadline expired while waiting for a request"));
}

TEST_F(RdmaCmTest, StopsWaitingOnRequest) {
  std::stop_source source;
  source.request_stop();
  EXPECT_THAT(errorOf([&] { listener().accept(*endpoint, "token", deadline, source.get_token()); }),
              HasSubstr("stopped while waiting for a request"));
}

}  // namespace
}  // namespace vfpass::probe
