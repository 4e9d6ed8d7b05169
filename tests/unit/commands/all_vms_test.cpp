#include "all_vms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "fake/temporary_folder.hpp"

namespace vfpass::commands {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> namesIn(const VmList& list) {
  std::vector<std::string> names;
  for (const auto& vm : list.vms) {
    names.push_back(vm.name);
  }
  return names;
}

class AllVmsTest : public testing::Test {
 protected:
  AllVmsTest() {
    options_.sysroot = "/nonexistent";  // nothing of this host is read, and no journal is written
    options_.configDirectory = folder_.path();
    options_.color = "never";
    run_.command = "attach";
    run_.list = [](Session&) {
      VmList list;
      list.vms = {{"train0", std::nullopt}, {"train1", std::nullopt}, {"train2", std::nullopt}};
      list.none = "no VM has a mapping";
      return list;
    };
    run_.run = [this](Session&, const std::string& vm) -> ExitCode {
      begun_.push_back(vm);
      if (vm == "train1") {
        throw Error("train1 is in use", "stop it", ExitCode::refused);
      }
      return ExitCode::done;
    };
  }

  ExitCode runAll() {
    Session session(options_, out_, err_);
    return runForAll(session, run_);
  }

  void writeMapping(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder_.path() / "vms");
    std::filesystem::permissions(folder_.path() / "vms", std::filesystem::perms(0755));
    const auto file = folder_.path() / "vms" / name;
    std::ofstream(file) << text;
    std::filesystem::permissions(file, std::filesystem::perms(0644));
  }

  fake::TemporaryFolder folder_;
  GlobalOptions options_;
  AllRun run_;
  std::vector<std::string> begun_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(AllVmsTest, FailureDoesNotStopTheOtherVms) {
  EXPECT_EQ(runAll(), ExitCode::refused);
  EXPECT_THAT(begun_, ElementsAre("train0", "train1", "train2"));
  EXPECT_EQ(out_.str(),
            "VM      RESULT         REASON\n"
            "train0  nothing to do\n"
            "train1  refused        train1 is in use\n"
            "train2  nothing to do\n"
            "3 VMs: 2 nothing to do, 1 refused\n");
  EXPECT_THAT(err_.str(), HasSubstr("vfpass: train1 is in use\n        stop it\n"));
}

TEST_F(AllVmsTest, InternalErrorDoesNotStopTheOtherVms) {
  options_.json = true;
  run_.run = [](Session& session, const std::string& vm) {
    if (vm == "train1") {
      throw std::out_of_range("index 3");
    }
    return session.finish("attach", ExitCode::done);
  };
  EXPECT_EQ(runAll(), ExitCode::failed);
  const auto document = nlohmann::json::parse(out_.str());
  EXPECT_EQ(document.at("vms").at(1).at("exit_code"), 1);
  EXPECT_EQ(document.at("vms").at(1).at("result").at("error").at("message"),
            "internal error: index 3");
  EXPECT_EQ(document.at("vms").at(2).at("exit_code"), 0);
  EXPECT_THAT(err_.str(), HasSubstr("vfpass: internal error: index 3\n"));
}

TEST_F(AllVmsTest, BeginsNoFurtherVmAfterAFailureIfAsked) {
  run_.stopOnFailure = true;
  EXPECT_EQ(runAll(), ExitCode::refused);
  EXPECT_THAT(begun_, ElementsAre("train0", "train1"));
  EXPECT_THAT(out_.str(), HasSubstr("train2  not begun\n"));
}

TEST_F(AllVmsTest, PendingChangesAreNoFailure) {
  run_.stopOnFailure = true;
  run_.dryRun = true;
  run_.run = [](Session& session, const std::string& vm) {
    session.out() << "plan of " << vm << '\n';
    return ExitCode::pending;
  };
  EXPECT_EQ(runAll(), ExitCode::pending);
  EXPECT_THAT(out_.str(), HasSubstr("plan of train0\n\nplan of train1\n\nplan of train2\n\nVM "));
}

TEST_F(AllVmsTest, SignalEndsAfterTheVmThatIsWorkedOn) {
  run_.run = [this](Session&, const std::string& vm) {
    begun_.push_back(vm);
    ::raise(SIGINT);
    return ExitCode::done;
  };
  EXPECT_THROW(runAll(), Cancelled);
  EXPECT_THAT(begun_, ElementsAre("train0"));
  EXPECT_THAT(out_.str(), HasSubstr("train0  nothing to do\ntrain1  not begun\n"));
}

TEST_F(AllVmsTest, VmThatASignalHasEndedHasNoExitCode) {
  run_.run = [](Session&, const std::string&) -> ExitCode {
    throw Cancelled(SIGTERM, "stopped by SIGTERM");
  };
  EXPECT_THROW(runAll(), Cancelled);
  EXPECT_THAT(out_.str(), HasSubstr("train0  stopped    stopped by SIGTERM\n"));
}

TEST_F(AllVmsTest, DocumentOfARunThatASignalHasEndedIsNoSuccess) {
  options_.json = true;
  run_.run = [](Session& session, const std::string&) {
    ::raise(SIGINT);
    return session.finish("attach", ExitCode::done);
  };
  EXPECT_THROW(runAll(), Cancelled);
  const auto document = nlohmann::json::parse(out_.str());
  EXPECT_EQ(document.at("exit_code"), 1);
  EXPECT_EQ(document.at("vms").at(0).at("exit_code"), 0);
}

TEST_F(AllVmsTest, JsonIsOneDocumentWithTheErrorOfEachVm) {
  options_.json = true;
  run_.run = [](Session& session, const std::string& vm) {
    if (vm == "train1") {
      throw Error("train1 is in use", "stop it", ExitCode::refused);
    }
    session.note("nothing to do");
    return session.finish("attach", ExitCode::done);
  };
  EXPECT_EQ(runAll(), ExitCode::refused);
  const auto document = nlohmann::json::parse(out_.str());
  EXPECT_EQ(document.at("exit_code"), 5);
  EXPECT_EQ(document.at("vms").size(), 3U);
  EXPECT_EQ(document.at("vms").at(0).at("result").at("notes").at(0), "nothing to do");
  EXPECT_EQ(document.at("vms").at(1).at("result").at("error").at("message"), "train1 is in use");
  EXPECT_EQ(document.at("vms").at(1).at("exit_code"), 5);
}

TEST_F(AllVmsTest, WarningOfSeveralVmsIsPrintedOnce) {
  options_.json = true;
  run_.run = [](Session& session, const std::string&) {
    session.warn("the same");
    return session.finish("attach", ExitCode::done);
  };
  runAll();
  const std::string text = err_.str();
  EXPECT_EQ(text.find("warning: the same"), text.rfind("warning: the same"));
  const auto document = nlohmann::json::parse(out_.str());
  for (const auto& vm : document.at("vms")) {
    EXPECT_EQ(vm.at("result").at("warnings").at(0), "the same");
  }
}

TEST_F(AllVmsTest, NothingToDoWithoutVms) {
  run_.list = [](Session&) {
    VmList list;
    list.none = "no VM has leases";
    return list;
  };
  EXPECT_EQ(runAll(), ExitCode::done);
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(err_.str(), HasSubstr("nothing to do: no VM has leases"));
}

TEST_F(AllVmsTest, MappingsWithMistakesCount) {
  writeMapping("a.yaml", "version: 1\nvm: train0\nvfs: [{name: rail0, pf: {netdev: x}}]\n");
  writeMapping("b.yaml",
               "version: 1\nvm: train1\nvfs: [{name: rail0, pf: {netdev: x}, vlam: 1}]\n");
  Session session(options_, out_, err_);
  const VmList list = mappedVms(session);
  EXPECT_THAT(namesIn(list), ElementsAre("train0", "train1"));
  EXPECT_THAT(list.failures, IsEmpty());
}

TEST_F(AllVmsTest, FileThatMayBeAMappingIsBadInput) {
  writeMapping("a.yaml", "version: 1\nvm: train0\nvfs: [{name: rail0, pf: {netdev: x}}]\n");
  writeMapping("b.yml", "version: 1\nvm: train1\nvfs: [{name: rail0, pf: {netdev: x}}]\n");
  run_.list = mappedVms;
  EXPECT_EQ(runAll(), ExitCode::badInput);
  EXPECT_THAT(begun_, ElementsAre("train0"));
  EXPECT_THAT(err_.str(), HasSubstr("expected a name ending in .yaml"));
}

TEST_F(AllVmsTest, RequiresEitherAVmOrAll) {
  const auto problem = [](const std::string& vm, const AllOptions& options) -> std::string {
    try {
      requireVmOrAll("attach", vm, options);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::badInput);
      return error.what();
    }
  };
  EXPECT_EQ(problem("train0", {}), "");
  EXPECT_EQ(problem("", {true, false, {}}), "");
  EXPECT_EQ(problem("", {}), "`vfpass attach` needs an argument: VM or --all");
  EXPECT_EQ(problem("train0", {true, false, {}}), "`vfpass attach`: VM train0 excludes --all");
  EXPECT_EQ(problem("", {true, false, {"--plan"}}), "`vfpass attach`: --all excludes --plan");
  EXPECT_EQ(problem("train0", {false, false, {"--plan"}}), "");
}

TEST(AllVms, OfLeasesAreSortedByName) {
  std::vector<Lease> leases(3);
  leases[0].domain.bytes[0] = 1;
  leases[0].domainName = "b";
  leases[1] = leases[0];
  leases[2].domain.bytes[0] = 2;
  leases[2].domainName = "a";
  const VmList list = leasedVms(leases);
  EXPECT_THAT(namesIn(list), ElementsAre("a", "b"));
  EXPECT_EQ(list.vms[1].uuid, leases[0].domain);
}

TEST(WorstCode, HasADocumentedOrder) {
  using Code = ExitCode;
  EXPECT_EQ(worstOf({}), Code::done);
  EXPECT_EQ(worstOf({Code::done, Code::pending}), Code::pending);
  EXPECT_EQ(worstOf({Code::pending, Code::unverified}), Code::unverified);
  EXPECT_EQ(worstOf({Code::unverified, Code::unproven}), Code::unproven);
  EXPECT_EQ(worstOf({Code::unproven, Code::failed}), Code::failed);
  EXPECT_EQ(worstOf({Code::failed, Code::refused, Code::done}), Code::refused);
  EXPECT_EQ(worstOf({Code::refused, Code::badInput, Code::failed}), Code::badInput);
}

}  // namespace
}  // namespace vfpass::commands
