#include "netlink/netlink_exchange.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>

#include "guarded_children.hpp"
#include "link_messages.hpp"
#include "netlink/link_dump.hpp"
#include "netlink/netlink_message.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::host {
namespace {

using testing::Contains;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::chrono::milliseconds batchDeadline{5000};

TEST(NetlinkBatch, AnswersEachQuery) {
  const auto answers = runNetlinkBatch({NetlinkPlace{}},
                                       {{0, NETLINK_ROUTE, linkDumpQuery(), true},
                                        {0, NETLINK_ROUTE, addressDumpQuery(), true},
                                        {0, NETLINK_ROUTE, linkDumpQuery(), true}},
                                       -1, batchDeadline);
  ASSERT_THAT(answers, SizeIs(3));
  for (const std::size_t links : {0U, 2U}) {
    EXPECT_EQ(answers[links].error, 0);
    const LinkDump dump = messages::readLinks(answers[links].bytes);
    EXPECT_EQ(dump.error, 0);
    EXPECT_THAT(dump.links, Contains(Field(&Link::name, "lo")));
  }
  EXPECT_EQ(messages::readAddresses(answers[1].bytes).error, 0);
}

TEST(NetlinkBatch, ReportsKernelErrorsAndContinues) {
  const FileDescriptor noNamespace(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto answers =
      runNetlinkBatch({NetlinkPlace{}},
                      {{0, 77, linkDumpQuery(), true},
                       {0, NETLINK_ROUTE, namespaceIdQuery(noNamespace.get()), false},
                       {0, NETLINK_ROUTE, linkDumpQuery(), true}},
                      noNamespace.get(), batchDeadline);
  ASSERT_THAT(answers, SizeIs(3));
  EXPECT_EQ(answers[0].error, EPROTONOSUPPORT);
  EXPECT_EQ(answers[1].error, 0) << "the exchange succeeds and the reply is an error";
  EXPECT_NE(dumpError(answers[1].bytes), 0);
  EXPECT_EQ(parseNamespaceId(answers[1].bytes), std::nullopt);
  EXPECT_EQ(messages::readLinks(answers[2].bytes).error, 0) << "the next query is still sent";
}

TEST(NetlinkBatch, ReportsMissingNamespace) {
  const auto answers = runNetlinkBatch(
      {NetlinkPlace{}, {1, {"/nowhere", "/dev/null"}}},
      {{0, NETLINK_ROUTE, linkDumpQuery(), true}, {1, NETLINK_ROUTE, linkDumpQuery(), true}}, -1,
      batchDeadline);
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_EQ(answers[0].error, 0);
  EXPECT_EQ(answers[1].error, ENOENT);
  EXPECT_THAT(answers[1].bytes, IsEmpty());
}

TEST(NetlinkBatch, ReportsTimeoutForUnansweredQuery) {
  const auto answers = runNetlinkBatch({NetlinkPlace{}},
                                       {{0, NETLINK_ROUTE, linkDumpQuery(), false},
                                        // The kernel does not answer an empty message.
                                        {0, NETLINK_ROUTE, std::string(1, '\0'), false}},
                                       -1, std::chrono::milliseconds(3000));
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_EQ(answers[0].error, 0);
  EXPECT_EQ(answers[1].error, ETIMEDOUT);
  EXPECT_TRUE(hasNoChild()) << "the child still waits for its reply";
}

TEST(NetlinkBatch, ReturnsNothingWithoutQueries) {
  EXPECT_THAT(runNetlinkBatch({}, {}, -1, batchDeadline), IsEmpty());
}

TEST(NetlinkExchange, OnlyAChangeMayStillTakeEffect) {
  const std::string unanswered(1, '\0');
  const std::chrono::milliseconds limit(20);
  const auto message = [](const std::function<void()>& exchange) -> std::string {
    try {
      exchange();
    } catch (const TimeoutError& error) {
      return error.what();
    }
    return "no timeout";
  };
  EXPECT_EQ(message([&] {
              exchangeNetlink(NETLINK_ROUTE, unanswered, {"eth0", "reading its addresses"}, limit);
            }),
            "eth0: reading its addresses: no reply from the kernel within 20 ms");
  EXPECT_TRUE(hasNoChild()) << "the child still waits for its reply";
  EXPECT_EQ(message([&] {
              sendChange(NETLINK_ROUTE, unanswered, {"eth0", "setting the MTU to 9000"}, limit);
            }),
            "eth0: setting the MTU to 9000: no reply from the kernel within 20 ms; the change may "
            "still take effect");
  EXPECT_FALSE(hasNoChild(std::chrono::milliseconds(0))) << "the change was given up";
  killChildren();
  EXPECT_TRUE(hasNoChild());
}

}  // namespace
}  // namespace vfpass::host
