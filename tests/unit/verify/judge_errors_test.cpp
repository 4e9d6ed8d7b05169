#include "judge_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

GuestView counted(const Json& counters) {
  return readGuestView(
      {{"rdma",
        {{"devices",
          {{{"name", "mlx5_0"}, {"ports", {{{"number", 1}, {"counters", counters}}}}}}}}}});
}

RdmaPort port(Wire wire = Wire::roceV2OverIpv4) {
  RdmaPort port;
  port.device = "mlx5_0";
  port.wire = wire;
  return port;
}

Finding judgedErrors(const Json& before, const Json& after, Wire wire = Wire::roceV2OverIpv4) {
  const GuestView later = counted(after);
  return judgeRdmaErrors("rail0", port(wire), counted(before), &later).value_or(Finding{});
}

TEST(JudgeRdmaErrorsTest, PassesWhenErrorCountersStandStill) {
  const Json same{{"out_of_sequence", 7}, {"symbol_error", 0}, {"port_xmit_data", 100}};
  const Finding found =
      judgedErrors(same, {{"out_of_sequence", 7}, {"symbol_error", 0}, {"port_xmit_data", 900}});
  EXPECT_EQ(found.key, "rdma-errors");
  EXPECT_EQ(found.subject, "rail0");
  EXPECT_EQ(found.outcome, Outcome::passed);
  EXPECT_THAT(found.seen, HasSubstr("2 counters"));
}

TEST(JudgeRdmaErrorsTest, LossesOfRoceAskForFlowControl) {
  for (const char* name : {"out_of_sequence", "packet_seq_err", "local_ack_timeout_err",
                           "implied_nak_seq_err", "port_xmit_discards"}) {
    const Finding found = judgedErrors({{name, 1}}, {{name, 4}});
    EXPECT_EQ(found.outcome, Outcome::warning) << name;
    EXPECT_THAT(found.seen, HasSubstr(std::string(name) + " 3"));
    EXPECT_THAT(found.remedy, HasSubstr("PFC")) << name;
  }
}

TEST(JudgeRdmaErrorsTest, InfinibandHasNoFlowControlToConfigure) {
  const Finding found =
      judgedErrors({{"packet_seq_err", 0}}, {{"packet_seq_err", 1}}, Wire::infiniband);
  EXPECT_EQ(found.outcome, Outcome::warning);
  EXPECT_THAT(found.remedy, HasSubstr("ibqueryerrors"));
  EXPECT_THAT(found.remedy, Not(HasSubstr("PFC")));
}

TEST(JudgeRdmaErrorsTest, EachKindHasItsOwnRemedy) {
  EXPECT_THAT(judgedErrors({{"symbol_error", 0}}, {{"symbol_error", 9}}).remedy,
              HasSubstr("cable"));
  EXPECT_THAT(judgedErrors({{"link_downed", 0}}, {{"link_downed", 1}}).remedy, HasSubstr("cable"));
  const Finding receiver = judgedErrors({{"rnr_nak_retry_err", 0}}, {{"rnr_nak_retry_err", 1}});
  EXPECT_EQ(receiver.outcome, Outcome::warning);
  EXPECT_THAT(receiver.remedy, HasSubstr("no buffer in time"));
  EXPECT_THAT(receiver.remedy, Not(HasSubstr("PFC")));
}

TEST(JudgeRdmaErrorsTest, CongestionIsInformation) {
  const Finding found = judgedErrors({{"np_cnp_sent", 0}, {"rp_cnp_handled", 1}},
                                     {{"np_cnp_sent", 5}, {"rp_cnp_handled", 2}});
  EXPECT_EQ(found.outcome, Outcome::passed);
  EXPECT_THAT(found.seen, HasSubstr("np_cnp_sent 5, rp_cnp_handled 1"));
  EXPECT_EQ(found.remedy, "");
}

TEST(JudgeRdmaErrorsTest, UnknownHasNotPassed) {
  const GuestView before = counted({{"out_of_sequence", 7}});
  EXPECT_EQ(judgeRdmaErrors("rail0", port(), before, nullptr)->outcome, Outcome::waived);
  const GuestView without = counted(Json::object());
  EXPECT_EQ(judgeRdmaErrors("rail0", port(), before, &without)->outcome, Outcome::waived);
  const Finding reset = judgedErrors({{"out_of_sequence", 7}}, {{"out_of_sequence", 2}});
  EXPECT_EQ(reset.outcome, Outcome::waived);
  EXPECT_THAT(reset.seen, HasSubstr("reset meanwhile: out_of_sequence"));
  const Finding both = judgedErrors({{"out_of_sequence", 7}, {"symbol_error", 0}},
                                    {{"out_of_sequence", 2}, {"symbol_error", 1}});
  EXPECT_EQ(both.outcome, Outcome::warning);
  EXPECT_FALSE(judgeRdmaErrors("rail0", port(), without, &before)) << "a driver without counters";
  EXPECT_FALSE(judgeRdmaErrors("rail0", port(), {}, &before));
}

TEST(JudgeRdmaErrorsTest, HostileCountersAreIgnored) {
  Json many = Json::object();
  for (int number = 0; number < 1000; ++number) {
    many["a" + std::to_string(number)] = 1;
  }
  EXPECT_EQ(counted(many).rdmaDevices[0].ports[0].counters.size(), 256U);
  const Finding found =
      judgedErrors({{"out_of_sequence", 0}, {"\x1b[31m", 0}, {"symbol_error", -1}},
                   {{"out_of_sequence", 0}, {"\x1b[31m", 9}, {"symbol_error", "x"}});
  EXPECT_EQ(found.outcome, Outcome::passed);
  EXPECT_THAT(found.seen, Not(HasSubstr("31m")));
  EXPECT_TRUE(counted("text").rdmaDevices[0].ports[0].counters.empty());
}

}  // namespace
}  // namespace vfpass::verify
