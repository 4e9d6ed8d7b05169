#include "nccl/nccl_library.hpp"

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

constexpr NcclResult ncclSuccess = 0;
constexpr const char* installNccl =
    "install NCCL in the guest (package libnccl2 of NVIDIA's CUDA repository)";

}  // namespace

std::string ncclVersionText(int version) {
  constexpr int firstLongVersion = 10000;
  const int major = version < firstLongVersion ? version / 1000 : version / 10000;
  const int minor = version < firstLongVersion ? version / 100 % 10 : version / 100 % 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 100);
}

std::vector<std::string> NcclLibrary::usualLibraries() {
  return {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2", "/usr/local/nccl/lib/libnccl.so.2"};
}

NcclLibrary::NcclLibrary(const std::vector<std::string>& libraries)
    : library_(libraries, installNccl, SharedLibrary::Binding::lazy) {
  findFunctions();
  require(getVersion_(&version_), "cannot read the version of NCCL");
  if (version_ < oldestVersion) {
    throw Error("NCCL " + ncclVersionText(version_) + " is too old: at least " +
                    ncclVersionText(oldestVersion) + " is needed",
                "install a newer NCCL in the guest");
  }
}

void NcclLibrary::findFunctions() {
  library_.require(getVersion_, "ncclGetVersion");
  library_.require(errorString_, "ncclGetErrorString");
  library_.find(lastError_, "ncclGetLastError");
  library_.require(getUniqueId, "ncclGetUniqueId");
  library_.require(initRank, "ncclCommInitRank");
  library_.require(destroy, "ncclCommDestroy");
  library_.require(getAsyncError_, "ncclCommGetAsyncError");
  library_.require(groupStart, "ncclGroupStart");
  library_.require(groupEnd, "ncclGroupEnd");
  library_.require(allReduce, "ncclAllReduce");
  library_.require(allGather, "ncclAllGather");
}

void NcclLibrary::require(NcclResult result, const std::string& what) const {
  if (result == ncclSuccess) {
    return;
  }
  const char* last = lastError_ == nullptr ? nullptr : lastError_(nullptr);
  const std::string detail(trim(last == nullptr ? "" : last));
  throw Error(what + ": " + printable(errorString_(result)) +
                  (detail.empty() ? "" : " (" + printable(detail) + ")"),
              "see the warnings of NCCL in the log");
}

void NcclLibrary::requireNoAsyncError(NcclCommunicator communicator,
                                      const std::string& what) const {
  NcclResult error = ncclSuccess;
  require(getAsyncError_(communicator, &error), "cannot ask NCCL for errors");
  require(error, what);
}

}  // namespace vfpass::probe
