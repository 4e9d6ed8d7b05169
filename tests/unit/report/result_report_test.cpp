#include <gtest/gtest.h>

#include <sstream>

#include "golden.hpp"
#include "samples.hpp"
#include "vfpass/report/command_reports.hpp"
#include "vfpass/report/plan_report.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::report {
namespace {

Error sampleError() {
  return {"invalid configuration of VM train0",
          {{"/etc/vfpass/vms/train0.yaml", 7, 3, "unknown key `vlam`", "did you mean `vlan`?"}},
          "run `vfpass check`"};
}

std::string writtenResult(const Result& result) {
  std::ostringstream out;
  writeResult(out, result);
  return out.str();
}

TEST(ResultReport, HasOperationsNotesAndFailures) {
  const std::string text = writtenResult(
      {"gc", {samples::plan()}, {"released lease rail0"}, {"PF is down"}, {sampleError()}});
  expectGolden("result.json", text);
  expectValid("result", text);
}

TEST(ResultReport, SaysThatNothingChanged) {
  const std::string text = writtenResult({"attach", {}, {"nothing to do"}, {}, {}});
  expectValid("result", text);
  EXPECT_NE(text.find("\"changed\": false"), std::string::npos);
}

TEST(ResultReport, HostPlanHasNoDomain) {
  Plan plan = samples::plan();
  plan.kind = PlanKind::host;
  plan.domainName.clear();
  const std::string text = writtenResult({"recover", {plan}, {}, {}, {}});
  expectValid("result", text);
  EXPECT_NE(text.find("\"domain\": null"), std::string::npos);
}

VmResult sampleVm(const std::string& name, std::optional<ExitCode> code,
                  const std::string& message = "") {
  VmResult vm;
  vm.vm = name;
  vm.begun = true;
  vm.code = code;
  vm.message = message;
  return vm;
}

AllResult sampleOfAll() {
  AllResult result;
  result.command = "attach";
  result.vms = {sampleVm("train0", ExitCode::done), sampleVm("train1", ExitCode::done),
                sampleVm("train2", ExitCode::refused, "cannot attach to train2: 2 problems:\n  a"),
                sampleVm("train3", std::nullopt, "stopped by SIGINT"), VmResult{}};
  result.vms[0].changed = true;
  result.vms[4].vm = "train4";
  result.code = ExitCode::refused;
  return result;
}

TEST(ResultReport, AllHasALineForEachVmAndCounts) {
  std::ostringstream out;
  writeAll(out, sampleOfAll(), {});
  EXPECT_EQ(out.str(),
            "VM      RESULT         REASON\n"
            "train0  done\n"
            "train1  nothing to do\n"
            "train2  refused        cannot attach to train2: 2 problems\n"
            "train3  stopped        stopped by SIGINT\n"
            "train4  not begun\n"
            "5 VMs: 1 done, 1 not begun, 1 nothing to do, 1 refused, 1 stopped\n");
}

TEST(ResultReport, AllOmitsTheReasonsIfNoVmHasOne) {
  AllResult result;
  result.command = "verify";
  result.vms = {sampleVm("train0", ExitCode::done)};
  std::ostringstream out;
  writeAll(out, result, {});
  EXPECT_EQ(out.str(),
            "VM      RESULT\n"
            "train0  passed\n"
            "1 VM: 1 passed\n");
}

TEST(ResultReport, AllIsOneDocumentWithThoseOfTheVms) {
  AllResult result = sampleOfAll();
  result.vms[1].uuid = Uuid{};
  result.vms[1].document = writtenResult({"attach", {}, {"nothing to do"}, {}, {}});
  result.failures = {sampleError()};
  std::ostringstream out;
  writeAll(out, result, {.json = true});
  expectValid("all", out.str());
  EXPECT_NE(out.str().find("\"nothing to do\""), std::string::npos);
  EXPECT_NE(out.str().find("\"exit_code\": null"), std::string::npos);
}

TEST(ResultReport, AllWithoutVmsIsADocument) {
  std::ostringstream out;
  writeAll(out, {"detach", {}, {}, ExitCode::done}, {.json = true});
  expectValid("all", out.str());
}

TEST(ResultReport, ErrorHasThePlacesOfItsMistakes) {
  std::ostringstream out;
  writeError(out, sampleError());
  expectGolden("error.json", out.str());
  expectValid("error", out.str());
}

TEST(ResultReport, ErrorIsAsciiJsonWhateverItsMessageContains) {
  std::ostringstream out;
  writeError(out, Error("domain \xff\x1b[31m\n", "", ExitCode::refused));
  expectValid("error", out.str());
  EXPECT_EQ(out.str().find('\x1b'), std::string::npos);
}

TEST(ResultReport, PlansOfGcAreOneDocument) {
  std::ostringstream out;
  writePlans(out, {samples::plan(), samples::plan()}, {.json = true});
  expectValid("plans", out.str());
  std::ostringstream none;
  writePlans(none, {}, {.json = true});
  expectValid("plans", none.str());
}

using events::PastOperation;

PastOperation attachOf(const std::string& vm) {
  PastOperation past;
  past.time += std::chrono::seconds(1767323045);
  past.messageId = "1a1e18434ef5407e82a8aca528a2b8c8";
  past.operation = "attach";
  past.result = "done";
  past.vm = vm;
  past.vmUuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
  past.message = "attached 1 device to domain train0";
  past.user = "alice";
  past.userId = 1000;
  past.pfs = {parsePciAddress("0000:3b:00.0").value()};
  past.vfs = {parsePciAddress("0000:3b:00.2").value()};
  return past;
}

PastOperation gcByTimer() {
  PastOperation past;
  past.time += std::chrono::seconds(1767409445);
  past.messageId = "22ac344a4a3c4182b6f3bf195fea95af";
  past.operation = "gc";
  past.result = "refused";
  past.message = "VF in use:\nby \x1b[31mqemu";
  past.remedy = "stop it";
  past.unit = "vfpass-gc.service";
  return past;
}

std::string writtenHistory(const std::vector<PastOperation>& operations, const Style& style) {
  std::ostringstream out;
  writeHistory(out, operations, style);
  return out.str();
}

TEST(HistoryReport, ListsOperations) {
  PastOperation boot = gcByTimer();
  boot.operation = "release";
  boot.result = "done";
  boot.unit = "";
  expectGolden("history.txt", writtenHistory({attachOf("train0"), gcByTimer(), boot}, {}));
}

TEST(HistoryReport, JsonMatchesItsSchema) {
  const std::string text = writtenHistory({attachOf("a\n\xff"), gcByTimer()}, {.json = true});
  expectValid("history", text);
  expectGolden("history.json", text);
}

TEST(HistoryReport, WithoutOperationsSaysSo) {
  EXPECT_EQ(writtenHistory({}, {}), "no operations\n");
  expectValid("history", writtenHistory({}, {.json = true}));
}

}  // namespace

}  // namespace vfpass::report
