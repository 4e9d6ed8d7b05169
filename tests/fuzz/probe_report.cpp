// Output of vfpass-probe in the guest, which can claim anything.
// covers: src/guest/verify/guest_view.cpp src/guest/verify/judge_transfer.cpp
// src/guest/verify/nccl_report.cpp -hasWrongBytes -judgeOthers -mayCarry -atOtherEnd
// -settledTraffic
#include <cmath>
#include <nlohmann/json.hpp>

#include "fuzz/target.hpp"
#include "guest_view.hpp"
#include "judge_nccl.hpp"
#include "judge_transfer.hpp"
#include "vfpass/agent/reply.hpp"

namespace vfpass::fuzz {
namespace {

std::vector<verify::Transfer> transfers() {
  verify::Transfer host;
  host.subject = "rail0";
  host.operation = "write";
  host.memory = "host";
  host.messageBytes = 65536;
  host.iterations = 10;
  verify::Transfer gpu = host;
  gpu.memory = "gpu";
  gpu.gpu = "gpu0";
  verify::Transfer besideHost = gpu;
  besideHost.besideHost = true;
  besideHost.relaxedOrdering = true;
  verify::Transfer fromGpu = gpu;
  fromGpu.targetMemory = "host";
  verify::Transfer intoGpu = fromGpu;
  intoGpu.operation = "read";
  return {host, gpu, besideHost, fromGpu, intoGpu};
}

// Counters of the host, which the guest cannot influence, refute a claim.
void checkTraffic(const verify::ClaimedBytes& claimed) {
  const VfTraffic before{100, 200, 1, 1};
  const VfTraffic after{300, 200, 2, 1};
  const auto finding = verify::judgeTraffic("rail0", claimed, before, after);
  require((finding.outcome == Outcome::passed) ==
              (claimed.least.sent == 0 && claimed.least.received <= 200),
          "a guest cannot claim more than the host has counted");
  require(verify::judgeTraffic("rail0", claimed, before, {}).outcome == Outcome::notObservable,
          "without counters, no claim is confirmed");
}

void checkFigures(const std::vector<Figure>& figures) {
  for (const auto& figure : figures) {
    require(std::isfinite(figure.gigabitsPerSecond) && figure.gigabitsPerSecond >= 0,
            "a rate is a number");
    require(std::isfinite(figure.medianMicroseconds.value_or(0)) &&
                std::isfinite(figure.tailMicroseconds.value_or(0)),
            "a latency is a number");
    require(figure.checkedBytes >= figure.messageBytes, "a figure has checked bytes");
  }
}

// The report of one guest's ranks, beside another guest that reports the same.
void checkNccl(const nlohmann::json& document) {
  verify::NcclOutcome outcome{{}, {65536}};
  for (unsigned rank = 0; rank < 2; ++rank) {
    verify::NcclMember member{"train" + std::to_string(rank), "", rank, {"gpu0"}, {""}};
    member.nics = {{"rail0", "", {}, "mlx5_0", std::nullopt, verify::MovedBytes{1, 1}}};
    member.connected = true;
    member.report = verify::readNcclReport(document);
    outcome.members.push_back(member);
  }
  verify::judgeNcclRanks(outcome);
  std::vector<Figure> figures;
  const bool right = verify::judgeNcclData(outcome, figures).outcome != Outcome::failed;
  require(right || figures.empty(), "only right data has figures");
  verify::judgeNcclTransport(outcome, outcome.members[0]);
  const auto traffic = verify::judgeNcclTraffic(outcome, outcome.members[0]);
  const auto least = verify::leastTraffic(verify::requestedRuns(outcome), 1, 2).least;
  require(
      !traffic || traffic->outcome != Outcome::passed || std::max(least.sent, least.received) <= 1,
      "a guest cannot claim more than the host has counted");
  verify::judgeNcclBandwidth(outcome, 0.5, {}, figures);
  checkFigures(figures);
}

}  // namespace

void runTarget(std::string_view input) {
  const auto report = accepted([&] { return agent::parseReply(input); });
  if (!report) {
    return;
  }
  const auto view = verify::readGuestView(*report);
  for (const auto& path : view.functions) {
    verify::functionAtPath(view, path);
  }
  checkNccl(*report);
  for (const auto& transfer : transfers()) {
    std::vector<Figure> figures;
    const auto finding = verify::judgeTransfer(transfer, *report, figures);
    require(finding.outcome != Outcome::passed || figures.size() == 1,
            "a transfer that passed has a figure");
    const auto claimed = verify::claimedBytes(transfer, *report, false);
    require((transfer.operation == "read" ? claimed.least.received : claimed.least.sent) >=
                transfer.bytes(),
            "a guest cannot claim less than the transfer");
    const auto looped = verify::claimedBytes(transfer, *report, true).least;
    require(looped.sent >= claimed.least.sent && looped.received >= claimed.least.received,
            "a loopback has both directions");
    checkTraffic(claimed);
    verify::judgeLatency(transfer, *report, figures);
    verify::judgeSizes(transfer, *report, figures);
    checkFigures(figures);
  }
}

}  // namespace vfpass::fuzz
