#include "nccl/nccl_session.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "system/sysfs_reader.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

std::string idText(const NcclUniqueId& id) {
  return hexBytes(
      std::span(reinterpret_cast<const std::uint8_t*>(id.internal.data()), id.internal.size()), "");
}

NcclUniqueId idFromText(std::string_view text) {
  NcclUniqueId id{};
  const std::span bytes(reinterpret_cast<std::uint8_t*>(id.internal.data()), id.internal.size());
  if (!parseHexBytes(trim(text), 0, bytes)) {
    throw Error("invalid unique ID of NCCL", "take it from the process with rank 0");
  }
  return id;
}

void writeIdFile(const std::string& file, const NcclUniqueId& id) {
  const std::string draft = file + ".new";
  const std::string text = idText(id) + "\n";
  const FileDescriptor made(
      ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!made || ::write(made.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::rename(draft.c_str(), file.c_str()) != 0) {
    throw Error("cannot write " + printable(file) + ": " + errnoText(errno),
                "name a new file in a directory of this user");
  }
}

NcclUniqueId readIdFile(const std::string& file, const Deadline& deadline) {
  const std::filesystem::path path = std::filesystem::absolute(file);
  const SysfsReader folder(path.parent_path());
  constexpr int pause = 20;
  while (!folder.exists(path.filename().string())) {
    requireTimeLeft(deadline, "waiting for the process with rank 0 to write " + printable(file));
    ::poll(nullptr, 0, pause);
  }
  constexpr std::size_t longestText = 1024;
  return idFromText(folder.bytes(path.filename().string(), longestText));
}

Json describe(const RankGpu& gpu, unsigned rank) {
  return {{"rank", rank}, {"pci", gpu.pciAddress()}, {"gpu", gpu.name()}};
}

Json toJson(const CollectiveRun& run, unsigned ranks) {
  Json document{{"operation", collectiveName(run.collective)},
                {"bytes", run.bytes},
                {"iterations", run.iterations},
                {"seconds", run.seconds},
                {"algorithm_gigabytes_per_second",
                 run.seconds > 0 ? static_cast<double>(run.bytes) / run.seconds / 1e9 : 0},
                {"bus_gigabytes_per_second", busBandwidth(run, ranks) / 1e9},
                {"checked_values", run.checkedValues},
                {"wrong_values", run.wrong.count}};
  if (run.wrong.count != 0) {
    document["first_wrong"] = {{"rank", run.wrongRank},
                               {"index", run.wrong.first},
                               {"expected", std::to_string(run.wrong.expected)},
                               {"seen", std::to_string(run.wrong.seen)}};
  }
  return document;
}

Json leftOut(Collective collective, std::uint64_t bytes, const std::string& reason) {
  return {{"operation", collectiveName(collective)}, {"bytes", bytes}, {"reason", reason}};
}

/// One operation and size, in the report.
void runOne(NcclRanks& ranks, const NcclPlan& plan, Collective collective, std::uint64_t bytes,
            const Deadline& deadline, Json& report) {
  CollectiveLimits limits = plan.limits;
  // Half, because checking takes about as long as the operations.
  limits.left = std::chrono::duration<double>(deadline.left()).count() / 2;
  const CollectiveRun run = ranks.run(collective, bytes, limits);
  if (run.iterations == 0) {
    report["left_out"].push_back(leftOut(collective, bytes, "too slow for the deadline"));
    return;
  }
  report["runs"].push_back(toJson(run, plan.ranks));
  report["passed"] = report["passed"].get<bool>() && run.wrong.count == 0;
}

void runAll(NcclRanks& ranks, const NcclPlan& plan, const Deadline& deadline,
            NcclProgress& progress, Json& report) {
  const std::uint64_t most = ranks.prepare(plan.sizes.back());
  for (const Collective collective : plan.collectives) {
    for (const std::uint64_t bytes : plan.sizes) {
      if (bytes > most) {
        report["left_out"].push_back(leftOut(collective, bytes, "not enough free GPU memory"));
      } else if (bytes < std::uint64_t{plan.ranks} * sizeof(float)) {
        report["left_out"].push_back(leftOut(collective, bytes, "less than a value for each rank"));
      } else {
        progress.set(collectiveName(collective) + " of " + std::to_string(bytes) + " bytes");
        runOne(ranks, plan, collective, bytes, deadline, report);
      }
    }
  }
}

/// As nccl-tests: over all sizes of an operation.
Json averages(const Json& runs, const std::vector<Collective>& collectives) {
  Json result = Json::object();
  for (const Collective collective : collectives) {
    std::vector<double> figures;
    for (const Json& run : runs) {
      if (run.at("operation") == collectiveName(collective)) {
        figures.push_back(run.at("bus_gigabytes_per_second").get<double>());
      }
    }
    if (!figures.empty()) {
      result[collectiveName(collective)] = std::accumulate(figures.begin(), figures.end(), 0.0) /
                                           static_cast<double>(figures.size());
    }
  }
  return result;
}

}  // namespace

std::vector<std::uint64_t> ncclSizes(const std::string& preset) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
  constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;
  if (preset == "quick") {
    return {mebibyte, 64 * mebibyte, gibibyte};
  }
  if (preset == "published") {
    return {gibibyte, 10 * gibibyte};
  }
  if (preset != "sizes") {
    throw Error("unknown preset " + printable(preset), "use quick, sizes or published",
                ExitCode::badInput);
  }
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 8; bytes <= 8 * gibibyte; bytes *= 2) {
    sizes.push_back(bytes);
  }
  return sizes;
}

void validate(const NcclPlan& plan) {
  const auto refuse = [](const std::string& problem, const std::string& remedy) {
    throw Error(problem, remedy, ExitCode::badInput);
  };
  if (plan.ranks > static_cast<unsigned>(mostNcclRanks)) {
    refuse("more than " + std::to_string(mostNcclRanks) + " ranks", "use fewer GPUs");
  }
  if (plan.first + plan.gpus.size() > plan.ranks) {
    refuse("the communicator has " + std::to_string(plan.ranks) + " ranks, fewer than " +
               std::to_string(plan.first + plan.gpus.size()),
           "set --ranks to the number of GPUs of all processes");
  }
  for (std::size_t each = 0; each < plan.gpus.size(); ++each) {
    if (std::ranges::count(plan.gpus, plan.gpus[each]) != 1) {
      refuse(describe(plan.gpus[each]) + " is named twice", "name each GPU once");
    }
  }
  if (plan.sizes.empty() || !std::ranges::is_sorted(plan.sizes)) {
    refuse("the sizes are not ascending", "list the smallest size first");
  }
}

void NcclProgress::set(const std::string& stage) {
  const std::lock_guard lock(mutex_);
  stage_ = stage;
}

std::string NcclProgress::stage() const {
  const std::lock_guard lock(mutex_);
  return stage_;
}

void NcclProgress::setGpus(const Json& gpus) {
  const std::lock_guard lock(mutex_);
  gpus_ = gpus.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Json NcclProgress::gpus() const {
  const std::lock_guard lock(mutex_);
  return Json::parse(gpus_);
}

ShareNcclId shareByFile(const std::string& file, bool makes, const Deadline& deadline) {
  return [file, makes, &deadline](const std::function<NcclUniqueId()>& make) {
    if (!makes) {
      return readIdFile(file, deadline);
    }
    const NcclUniqueId id = make();
    writeIdFile(file, id);
    return id;
  };
}

ShareNcclId shareByChannel(Channel& channel, bool makes) {
  return [&channel, makes](const std::function<NcclUniqueId()>& make) {
    Json ready{{"type", "ready"}, {"protocol", protocolVersion}};
    if (makes) {
      ready["id"] = idText(make());
    }
    channel.send(ready);
    const Json begin = channel.receive("begin");
    return idFromText(readerOf(begin)["id"].requireText());
  };
}

ShareNcclId shareWithNobody() {
  return [](const std::function<NcclUniqueId()>& make) { return make(); };
}

Json runNccl(const NcclPlan& plan, const ShareNcclId& share, const std::function<void()>& connected,
             const Deadline& deadline, NcclProgress& progress) {
  progress.set("loading NCCL");
  const NcclLibrary nccl;
  progress.set("opening the GPUs");
  const auto driver = std::make_shared<const CudaDriver>();
  std::vector<std::unique_ptr<RankGpu>> gpus;
  Json described = Json::array();
  for (const GpuChoice& choice : plan.gpus) {
    gpus.push_back(std::make_unique<RankGpu>(driver, choice));
    described.push_back(
        describe(*gpus.back(), plan.first + static_cast<unsigned>(described.size())));
  }
  progress.setGpus(described);

  progress.set("waiting for the unique ID");
  const NcclUniqueId id = share([&nccl] {
    NcclUniqueId made{};
    nccl.require(nccl.getUniqueId(&made), "cannot make a unique ID");
    return made;
  });
  progress.set("meeting the other ranks");
  NcclRanks ranks(nccl, gpus, plan.ranks, plan.first);
  ranks.meet(id);
  connected();

  Json report{{"nccl_version", ncclVersionText(nccl.version())},
              {"ranks", plan.ranks},
              {"local", described},
              {"runs", Json::array()},
              {"left_out", Json::array()},
              {"passed", true}};
  runAll(ranks, plan, deadline, progress, report);
  progress.set("closing");
  ranks.part();
  report["average_bus_gigabytes_per_second"] = averages(report["runs"], plan.collectives);
  report["passed"] = report["passed"].get<bool>() && !report["runs"].empty();
  return report;
}

}  // namespace vfpass::probe
