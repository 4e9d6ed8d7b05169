#include "judge_guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

Json limit(const Json& soft) { return {{"soft", soft}, {"hard", soft}, {"file", "/etc/f"}}; }

Finding memoryLock(const Json& login, const Json& services, const Json& others = Json::array()) {
  const auto findings = judgeGuestSystem(readGuestView({{"memory_lock",
                                                         {{"login", login},
                                                          {"login_others", others},
                                                          {"services", services},
                                                          {"memory_bytes", 1000000}}}}));
  return findings.empty() ? Finding{} : findings.front();
}

TEST(JudgeMemoryLockTest, PassesWithoutLimit) {
  const Finding found = memoryLock(limit(nullptr), nullptr);
  EXPECT_EQ(found.key, "memory-lock");
  EXPECT_EQ(found.outcome, Outcome::passed);
  EXPECT_EQ(found.seen, "logins: unlimited (/etc/f); services: not set");
  EXPECT_EQ(memoryLock(limit(500000), nullptr).outcome, Outcome::passed) << "half of the memory";
  EXPECT_EQ(memoryLock(nullptr, limit(nullptr)).outcome, Outcome::passed)
      << "logins inherit the limit of sshd";
}

TEST(JudgeMemoryLockTest, WarnsAboutLowLimit) {
  const Finding low = memoryLock(limit(65536), limit(nullptr));
  EXPECT_EQ(low.outcome, Outcome::warning);
  EXPECT_THAT(low.seen, HasSubstr("logins: 64 KiB (/etc/f)"));
  EXPECT_THAT(low.remedy, HasSubstr("* soft memlock unlimited"));
  const Finding unset = memoryLock(nullptr, nullptr);
  EXPECT_EQ(unset.outcome, Outcome::waived) << "as in every new guest; the probe runs as root";
  EXPECT_THAT(unset.seen, HasSubstr("default applies"));
  const Finding hardOnly = memoryLock({{"hard", nullptr}, {"file", "/etc/f"}}, nullptr);
  EXPECT_EQ(hardOnly.outcome, Outcome::waived);
  EXPECT_THAT(hardOnly.seen, HasSubstr("only the hard limit is set, unlimited"));
}

TEST(JudgeMemoryLockTest, ShowsUsersWithoutLimit) {
  Json rdma = limit(nullptr);
  rdma["who"] = "@rdma";
  const Finding found = memoryLock(limit(65536), nullptr, Json::array({rdma}));
  EXPECT_EQ(found.outcome, Outcome::warning) << "others are limited";
  EXPECT_THAT(found.seen, HasSubstr("@rdma unlimited"));
  EXPECT_THAT(found.remedy, HasSubstr("those users need nothing"));
}

TEST(JudgeMemoryLockTest, UnknownHasNotPassed) {
  EXPECT_TRUE(judgeGuestSystem({}).empty()) << "an older probe";
  for (const Json& odd : {Json("unlimited"), Json(-1), Json(1.5), Json::array()}) {
    EXPECT_EQ(memoryLock({{"soft", odd}, {"file", 7}}, nullptr).outcome, Outcome::waived) << odd;
  }
  const Json many = Json::array_t(1000, limit(nullptr));
  EXPECT_EQ(
      readGuestView({{"memory_lock", {{"login_others", many}}}}).memoryLock->loginOfOthers.size(),
      16U);
}

Finding nextKernel(const Json& kernels) {
  const auto findings = judgeGuestSystem(readGuestView({{"newer_kernels", kernels}}));
  return findings.empty() ? Finding{} : findings.front();
}

Json kernel(const std::string& release, const Json& missing) {
  return {{"release", release}, {"missing", missing}};
}

TEST(JudgeNextKernelTest, WarnsAboutModulesThatWillBeMissing) {
  EXPECT_EQ(nextKernel(Json::array()).outcome, Outcome::passed);
  EXPECT_EQ(nextKernel(Json::array({kernel("6.9", Json::array())})).outcome, Outcome::passed);
  const Finding found =
      nextKernel({kernel("6.9", Json::array()), kernel("6.10", Json::array({"nvidia"}))});
  EXPECT_EQ(found.key, "kernel-update");
  EXPECT_EQ(found.outcome, Outcome::warning);
  EXPECT_EQ(found.seen, "6.9: all of them; 6.10 lacks nvidia");
  EXPECT_THAT(found.remedy, HasSubstr("dkms autoinstall -k 6.10"));
}

TEST(JudgeNextKernelTest, UnknownHasNotPassed) {
  EXPECT_EQ(nextKernel(Json::array({kernel("6.9", nullptr)})).outcome, Outcome::waived);
  EXPECT_EQ(nextKernel("text").key, "") << "an older probe";
  const Finding hostile = nextKernel({kernel("6.9; reboot", Json::array({"nvidia"})),
                                      kernel("6.9", Json::array({"a\nb"})),
                                      kernel(std::string(1000, '9'), Json::array({"nvidia"}))});
  EXPECT_EQ(hostile.seen, "6.9 lacks ?");
  EXPECT_EQ(readGuestView({{"newer_kernels", Json::array_t(99, kernel("6.9", nullptr))}})
                .newerKernels->size(),
            16U);
}

}  // namespace
}  // namespace vfpass::verify
