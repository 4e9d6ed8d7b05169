#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "channel/channel.hpp"
#include "nccl/nccl_log.hpp"
#include "nccl/nccl_session.hpp"
#include "program/probe_commands.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

struct NcclOptions {
  NcclPlan plan;
  std::vector<std::string> gpus = {"0"};
  std::vector<std::uint64_t> sizes;
  std::string preset = "quick";
  std::string operation = "both";
  std::string idFile;
  std::string folder;
  int deadlineSeconds = deadlines::probeRun.count();
};

NcclPlan planOf(const NcclOptions& options) {
  NcclPlan plan = options.plan;
  plan.gpus.clear();
  for (const std::string& text : options.gpus) {
    plan.gpus.push_back(parseGpuChoice(text));
  }
  if (options.operation != "both") {
    plan.collectives = {options.operation == "all-gather" ? Collective::allGather
                                                          : Collective::allReduce};
  }
  plan.sizes = options.sizes.empty() ? ncclSizes(options.preset) : options.sizes;
  plan.ranks = plan.ranks == 0 ? static_cast<unsigned>(plan.gpus.size()) : plan.ranks;
  validate(plan);
  const bool alone = plan.ranks == plan.gpus.size();
  if (!alone && options.idFile.empty() == options.folder.empty()) {
    throw Error("ranks of other processes need either --id-file or --folder",
                "see vfpass-probe nccl --help", ExitCode::badInput);
  }
  return plan;
}

/// The session in a thread of its own, because calls into NCCL can wait forever.
class GuardedSession {
 public:
  explicit GuardedSession(const NcclOptions& options)
      : plan_(planOf(options)),
        deadline_(std::chrono::seconds(options.deadlineSeconds)),
        options_(options) {}

  /// The document; at the deadline without an end of the session. `ended` tells which.
  Json run(bool& ended) {
    auto result = std::make_shared<std::promise<Json>>();
    auto future = result->get_future();
    std::thread([this, result] { result->set_value(work()); }).detach();
    ended = future.wait_for(deadline_.left() + grace) == std::future_status::ready;
    Json document = ended ? future.get() : expired();
    document["log"] = toJson(readNcclLog(log_.text()));
    return document;
  }

 private:
  // After the session's own deadline, which gives better reasons.
  static constexpr std::chrono::milliseconds grace{500};

  Json work() {
    try {
      if (options_.folder.empty()) {
        return session(options_.idFile.empty()
                           ? shareWithNobody()
                           : shareByFile(options_.idFile, plan_.first == 0, deadline_),
                       [] {});
      }
      Channel channel(folderTransport(options_.folder), deadline_);
      return session(shareByChannel(channel, plan_.first == 0), [&channel] {
        channel.send({{"type", "connected"}});
      });
    } catch (const CudaError& error) {
      return failure(error.what(), remedyOf(error));
    } catch (const Error& error) {
      return failure(error.what(), error.remedy());
    } catch (const std::exception& error) {
      return failure(error.what(), "");
    }
  }

  Json session(const ShareNcclId& share, const std::function<void()>& connected) {
    return runNccl(plan_, share, connected, deadline_, progress_);
  }

  [[nodiscard]] Json failure(const std::string& error, const std::string& remedy) const {
    return {{"error", error},       {"remedy", remedy},
            {"passed", false},      {"stage", progress_.stage()},
            {"ranks", plan_.ranks}, {"local", progress_.gpus()}};
  }

  [[nodiscard]] Json expired() const {
    return failure("deadline expired while " + progress_.stage(),
                   "check that every rank runs and reaches rank 0's address (bootstrap in the log; "
                   "NCCL_SOCKET_IFNAME selects the interface), or use a longer --deadline");
  }

  NcclPlan plan_;
  Deadline deadline_;
  const NcclOptions& options_;
  NcclProgress progress_;
  NcclLog log_;
};

int codeOf(const Json& document) {
  const bool failed = document.contains("error");
  const bool passed = document.at("passed").get<bool>();
  return passed ? 0 : static_cast<int>(failed ? ExitCode::failed : ExitCode::unproven);
}

int runNcclCommand(const NcclOptions& options) {
  GuardedSession session(options);
  bool ended = false;
  const Json document = session.run(ended);
  writeDocument(document);
  if (!ended || document.contains("error")) {
    // A thread of NCCL may still wait for another rank; destructors would wait for it.
    std::_Exit(codeOf(document));
  }
  return codeOf(document);
}

}  // namespace

void addNccl(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "nccl", "Run all-reduce and all-gather of NCCL and check every value of the results");
  auto options = std::make_shared<NcclOptions>();
  command
      ->add_option("--gpu", options->gpus,
                   "GPU of a rank: a CUDA device index, or its PCI address in the guest; repeat it "
                   "for several ranks in this process")
      ->type_name("INDEX|DDDD:BB:DD.F")
      ->default_str("0");
  command
      ->add_option("--ranks", options->plan.ranks,
                   "Ranks of all processes (default: those of this process)")
      ->check(CLI::Range(1, mostNcclRanks));
  command->add_option("--first-rank", options->plan.first, "Number of this process's first rank")
      ->check(CLI::Range(0, mostNcclRanks - 1))
      ->capture_default_str();
  command->add_option("--id-file", options->idFile,
                      "File with the unique ID: written by the process with rank 0, awaited by "
                      "the others");
  command->add_option("--folder", options->folder,
                      "Directory to exchange the unique ID with the host, instead of --id-file");
  command->add_option("--operation", options->operation)
      ->check(CLI::IsMember({"both", "all-reduce", "all-gather"}))
      ->capture_default_str();
  command
      ->add_option(
          "--preset", options->preset,
          "Sizes: quick: 1 MiB, 64 MiB, 1 GiB; sizes: 8 bytes to 8 GiB; published: 1 and 10 "
          "GiB")
      ->capture_default_str();
  command->add_option("--bytes", options->sizes, "Sizes instead of a preset's, such as 1M 1G")
      ->transform(CLI::AsSizeValue(false));
  command
      ->add_option("--iterations", options->plan.limits.iterations,
                   "Most timed iterations of one size")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command
      ->add_option("--deadline", options->deadlineSeconds, "Timeout for the whole run, in seconds")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command->callback(
      [&chosen, options] { chosen = [options] { return runNcclCommand(*options); }; });
}

}  // namespace vfpass::probe
