#include "command_session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <iostream>
#include <sstream>
#include <thread>
#include <vector>

#include "fake/fake_hypervisor.hpp"

namespace vfpass::commands {
namespace {

using std::chrono::milliseconds;

// libvirt, which reads no domain until the test lets it.
class SilentHypervisor final : public Hypervisor {
 public:
  explicit SilentHypervisor(std::shared_future<void> answers) : answers_(std::move(answers)) {}

  std::string uri() override { return answered("qemu:///system"); }
  HypervisorVersions versions() override { return answered(HypervisorVersions{}); }
  std::vector<NetworkDescription> listNetworks() override {
    return answered(std::vector<NetworkDescription>());
  }
  std::optional<DomainDescription> findDomain(const std::string& /*name*/) override {
    return answered(std::optional<DomainDescription>());
  }
  std::vector<DomainDescription> listDomains() override {
    return answered(std::vector<DomainDescription>());
  }
  std::optional<Definition> readDefinition(const Uuid& /*domain*/) override {
    return answered(std::optional<Definition>());
  }
  void defineDomain(const Definition& /*definition*/) override {}
  void syncDefinitions() override {}
  void attachDevice(const Uuid& /*domain*/, const std::string& /*xml*/) override {}
  void detachDevice(const Uuid& /*domain*/, const std::string& /*alias*/, milliseconds /*timeout*/,
                    const std::function<void()>& /*checkpoint*/) override {}
  void setLiveMetadata(const Uuid& /*domain*/, const std::string& /*element*/) override {}
  std::string askAgent(const Uuid& /*domain*/, const std::string& /*command*/,
                       std::chrono::seconds /*timeout*/) override {
    return "agent";
  }

 private:
  template <typename Answer>
  Answer answered(Answer answer) {
    answers_.wait();
    return answer;
  }

  std::shared_future<void> answers_;
};

report::ProgressLine& noProgress() {
  static report::ProgressLine line(std::cerr, false);
  return line;
}

TEST(BoundedHypervisor, PassesAnswersOn) {
  auto inner = std::make_unique<fake::FakeHypervisor>();
  inner->domains.push_back({{}, "train0", false, true, "<domain/>", {}});
  const auto bounded = boundedHypervisor(std::move(inner), std::chrono::seconds(60), noProgress());
  EXPECT_EQ(bounded->uri(), "qemu:///system");
  EXPECT_EQ(bounded->listDomains().size(), 1U);
  EXPECT_TRUE(bounded->findDomain("train0"));
}

TEST(BoundedHypervisor, PassesErrorsOn) {
  auto inner = std::make_unique<fake::FakeHypervisor>();
  inner->disconnected = true;
  const auto bounded = boundedHypervisor(std::move(inner), std::chrono::seconds(60), noProgress());
  for (int call = 0; call != 2; ++call) {
    try {
      static_cast<void>(bounded->findDomain("train0"));
      ADD_FAILURE();
    } catch (const NoAnswer&) {
      ADD_FAILURE() << "an answer, although an error";
    } catch (const Error&) {
    }
  }
}

using Call = std::function<void(Hypervisor&)>;

const std::vector<Call> readingCalls = {
    [](Hypervisor& libvirt) { static_cast<void>(libvirt.uri()); },
    [](Hypervisor& libvirt) { static_cast<void>(libvirt.versions()); },
    [](Hypervisor& libvirt) { static_cast<void>(libvirt.listNetworks()); },
    [](Hypervisor& libvirt) { static_cast<void>(libvirt.findDomain("train0")); },
    [](Hypervisor& libvirt) { static_cast<void>(libvirt.listDomains()); },
    [](Hypervisor& libvirt) { static_cast<void>(libvirt.readDefinition(Uuid{})); }};

TEST(BoundedHypervisor, WaitsOnceForAnAnswer) {
  for (const Call& call : readingCalls) {
    std::promise<void> answers;
    const auto bounded =
        boundedHypervisor(std::make_unique<SilentHypervisor>(answers.get_future().share()),
                          milliseconds(20), noProgress());
    EXPECT_THROW(call(*bounded), NoAnswer);
    EXPECT_THROW(call(*bounded), NoAnswer);
    EXPECT_EQ(callsInProgress, 1) << "asked again";
    EXPECT_EQ(bounded->askAgent({}, "", std::chrono::seconds(1)), "agent");
    answers.set_value();
    while (callsInProgress != 0) {
      std::this_thread::yield();
    }
  }
}

// The clock shows a second more each time; the third is when the line is written.
TEST(BoundedHypervisor, ShowsALongCall) {
  std::promise<void> answers;
  std::atomic<int> asked = 0;
  std::ostringstream out;
  report::ProgressLine line(out, true, 80, [&] {
    const int now = ++asked;
    if (now == 3) {
      answers.set_value();
    }
    return report::ProgressLine::Clock::time_point(std::chrono::seconds(now));
  });
  const auto bounded =
      boundedHypervisor(std::make_unique<SilentHypervisor>(answers.get_future().share()),
                        std::chrono::seconds(60), line);
  EXPECT_EQ(bounded->uri(), "qemu:///system");
  EXPECT_THAT(out.str(), testing::HasSubstr("waiting for libvirt, 2 s"));
  EXPECT_TRUE(out.str().ends_with("\r\x1b[K"));
}

TEST(BoundedHypervisor, NamesTheTime) {
  const NoAnswer error(std::chrono::seconds(75));
  EXPECT_STREQ(error.what(), "libvirt did not answer within 75 s");
  EXPECT_EQ(error.code(), ExitCode::failed);
}

}  // namespace
}  // namespace vfpass::commands
