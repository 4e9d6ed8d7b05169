// Output of vfpass-probe in the guest, which can claim anything.
// covers: src/verify/guest_view.cpp src/verify/judge_transfer.cpp
#include <cmath>

#include "fuzz/target.hpp"
#include "guest_view.hpp"
#include "judge_transfer.hpp"
#include "vfpass/agent/reply.hpp"

namespace vfpass::fuzz {
namespace {

verify::Transfer transferTo(const std::string& memory) {
  verify::Transfer transfer;
  transfer.subject = "rail0";
  transfer.operation = "write";
  transfer.memory = memory;
  transfer.messageBytes = 65536;
  transfer.iterations = 10;
  return transfer;
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
  for (const char* memory : {"host", "gpu"}) {
    const auto transfer = transferTo(memory);
    std::vector<Figure> figures;
    const auto finding = verify::judgeTransfer(transfer, *report, figures);
    require(finding.outcome != Outcome::passed || figures.size() == 1,
            "a transfer that passed has a figure");
    require(verify::claimedBytes(transfer, *report) >= transfer.bytes(),
            "a guest cannot claim less than the transfer");
    verify::judgeLatency(transfer, *report, figures);
    verify::judgeSizes(transfer, *report, figures);
    checkFigures(figures);
  }
}

}  // namespace vfpass::fuzz
