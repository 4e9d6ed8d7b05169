// A libnccl without a GPU, for tests: the calls, groups of them, and results. The ranks' data goes
// through an Exchange: in unit tests beside tests/fake/cuda through a file in /dev/shm
// (shared_file.cpp), whose name is the unique ID, in the lab's guests by RDMA (lab/gpu/libnccl).
// GPU memory is memory of the process.
//   FAKE_NCCL_VERSION  what ncclGetVersion returns
//   FAKE_NCCL_LOG      text for the log (NCCL_DEBUG_FILE), instead of the exchange's
//   FAKE_NCCL_FAULT    wrong (one value of each float result), absent (never joins), dies (the
//                      process, at the first float operation), remote (ncclRemoteError instead of
//                      it), invents (float results without any exchange, which all ranks have to
//                      do: the probe's values of a rank are multiples of any other's)
//                      claims (the process ends there with the report in FAKE_NCCL_REPORT)
//   FAKE_NCCL_RANK     the rank that has the fault; default: 0, of `invents`: all

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exchange.hpp"

namespace {

using fake_nccl::Exchange;
using fake_nccl::invalidArgument;
using fake_nccl::remoteError;
using fake_nccl::success;

constexpr int float32 = 7;
constexpr int maximum = 2;

struct UniqueId {
  std::array<char, 128> internal;
};

struct Communicator {
  int ranks = 0;
  int rank = 0;
  std::unique_ptr<Exchange> exchange = {};
};

/// One call within a group.
struct Operation {
  Communicator* communicator = nullptr;
  const char* source = nullptr;
  char* destination = nullptr;
  std::size_t count = 0;
  int type = 0;
  int reduction = -1;  ///< -1: all-gather
};

int depth = 0;
std::vector<Communicator*> joining;
std::vector<Operation> operations;

std::string variable(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : value;
}

bool hasFault(const char* fault, const Communicator& communicator) {
  return variable("FAKE_NCCL_FAULT", "") == fault &&
         std::atoi(variable("FAKE_NCCL_RANK", "0").c_str()) == communicator.rank;
}

void writeLog(const std::string& text) {
  const std::string path = text.empty() ? "" : variable("NCCL_DEBUG_FILE", "");
  if (std::FILE* file = path.empty() ? nullptr : std::fopen(path.c_str(), "a")) {
    std::fputs(variable("FAKE_NCCL_LOG", text.c_str()).c_str(), file);
    std::fputs("\n", file);
    std::fclose(file);
  }
}

void rest() { ::usleep(200); }

template <typename Number>
void reduce(const Operation& operation) {
  const Communicator& communicator = *operation.communicator;
  auto* result = reinterpret_cast<Number*>(operation.destination);
  for (std::size_t i = 0; i < operation.count; ++i) {
    Number value = reinterpret_cast<const Number*>(communicator.exchange->part(0))[i];
    for (int rank = 1; rank < communicator.ranks; ++rank) {
      const Number other = reinterpret_cast<const Number*>(communicator.exchange->part(rank))[i];
      value = operation.reduction == maximum ? std::max(value, other) : value + other;
    }
    result[i] = value;
  }
}

std::size_t bytesOf(const Operation& operation) {
  return operation.count * (operation.type == float32 ? sizeof(float) : sizeof(double));
}

void finish(const Operation& operation) {
  const Communicator& communicator = *operation.communicator;
  const std::size_t bytes = bytesOf(operation);
  if (operation.reduction < 0) {
    for (int rank = 0; rank < communicator.ranks; ++rank) {
      std::memcpy(operation.destination + static_cast<std::size_t>(rank) * bytes,
                  communicator.exchange->part(rank), bytes);
    }
  } else if (operation.type == float32) {
    reduce<float>(operation);
  } else {
    reduce<double>(operation);
  }
  if (operation.type == float32 && hasFault("wrong", communicator)) {
    reinterpret_cast<float*>(operation.destination)[operation.count / 2] += 1;
  }
}

// The others' data from this rank's, whose values are multiples of its number and one. The parts
// stay as they are: another rank may be ahead and give its figures there.
void invent(const Operation& operation) {
  const Communicator& communicator = *operation.communicator;
  const auto* own = reinterpret_cast<const float*>(operation.source);
  auto* result = reinterpret_cast<float*>(operation.destination);
  const bool isGather = operation.reduction < 0;
  const int ranks = communicator.ranks;
  for (int part = 0; part < (isGather ? ranks : 1); ++part) {
    const int factor = isGather ? part + 1 : ranks * (ranks + 1) / 2;
    for (std::size_t i = 0; i < operation.count; ++i) {
      *result++ = own[i] / static_cast<float>(communicator.rank + 1) * static_cast<float>(factor);
    }
  }
}

bool isInvented(const Operation& operation) {
  return operation.type == float32 && variable("FAKE_NCCL_FAULT", "") == "invents";
}

int give(const Operation& operation) {
  const Communicator& communicator = *operation.communicator;
  if (bytesOf(operation) > communicator.exchange->mostBytes()) {
    return invalidArgument;
  }
  if (operation.type == float32 && hasFault("dies", communicator)) {
    std::_Exit(9);
  }
  if (operation.type == float32 && hasFault("claims", communicator)) {
    std::puts(variable("FAKE_NCCL_REPORT", "").c_str());
    std::fflush(stdout);
    std::_Exit(0);
  }
  if (operation.type == float32 && hasFault("remote", communicator)) {
    return remoteError;
  }
  return communicator.exchange->give(operation.source, bytesOf(operation));
}

template <typename Each>
int barrier(const std::vector<Each>& group, const auto& communicatorOf) {
  int result = success;
  for (const Each& each : group) {
    result = std::max(result, communicatorOf(each)->exchange->arrive());
  }
  for (const Each& each : group) {
    result = std::max(result, result == success ? communicatorOf(each)->exchange->await() : result);
  }
  return result;
}

/// All operations of the group together, each on another rank of this process.
int runOperations() {
  const std::vector<Operation> group = std::exchange(operations, {});
  if (std::ranges::any_of(group, isInvented)) {
    std::ranges::for_each(group, invent);
    return success;
  }
  const auto communicatorOf = [](const Operation& each) { return each.communicator; };
  for (const Operation& each : group) {
    if (const int result = give(each); result != success) {
      return result;
    }
  }
  if (const int result = barrier(group, communicatorOf); result != success) {
    return result;
  }
  std::ranges::for_each(group, finish);
  return barrier(group, communicatorOf);  // nobody overwrites what another still reads
}

int joinAll() {
  for (Communicator* each : joining) {
    while (hasFault("absent", *each)) {
      rest();
    }
    if (const int result = each->exchange->join(); result != success) {
      return result;
    }
  }
  return success;
}

int endGroup() {
  if (const int result = joinAll(); result != success) {
    return result;
  }
  const std::vector<Communicator*> joined = std::exchange(joining, {});
  for (const Communicator* each : joined) {
    if (const int result = each->exchange->waitForAll(); result != success) {
      return result;
    }
    writeLog(each->exchange->log());
  }
  const int met = barrier(joined, [](const Communicator* each) { return each; });
  return met == success ? runOperations() : met;
}

int add(const Operation& operation) {
  operations.push_back(operation);
  return depth == 0 ? endGroup() : success;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = std::atoi(variable("FAKE_NCCL_VERSION", "22809").c_str());
  return success;
}

const char* ncclGetErrorString(int result) {
  return result == remoteError ? "remote process exited or there was a network error"
                               : "fake error";
}

int ncclGetUniqueId(UniqueId* id) {
  const auto made = fake_nccl::newMeeting();
  if (made.id.empty() || made.id.size() >= id->internal.size()) {
    return invalidArgument;
  }
  writeLog(made.log);
  *id = {};
  std::copy(made.id.begin(), made.id.end(), id->internal.begin());
  return success;
}

int ncclCommInitRank(Communicator** made, int ranks, UniqueId id, int rank) {
  *made = new Communicator{ranks, rank, fake_nccl::newExchange(id.internal.data(), ranks, rank)};
  if ((*made)->exchange == nullptr) {
    return invalidArgument;
  }
  joining.push_back(*made);
  return depth == 0 ? endGroup() : success;
}

int ncclCommDestroy(Communicator* communicator) {
  delete communicator;
  return success;
}

int ncclCommGetAsyncError(Communicator* /*communicator*/, int* error) {
  *error = success;
  return success;
}

int ncclGroupStart() {
  ++depth;
  return success;
}

int ncclGroupEnd() { return --depth == 0 ? endGroup() : success; }

int ncclAllReduce(const char* source, char* destination, std::size_t count, int type, int reduction,
                  Communicator* communicator, void* /*stream*/) {
  return add({communicator, source, destination, count, type, reduction});
}

int ncclAllGather(const char* source, char* destination, std::size_t count, int type,
                  Communicator* communicator, void* /*stream*/) {
  return add({communicator, source, destination, count, type, -1});
}

}  // extern "C"
