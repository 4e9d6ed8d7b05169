// A libnccl without a GPU, for tests, beside tests/fake/cuda: ranks of one machine exchange their
// data through a file in /dev/shm, whose name is the unique ID. Memory of the fake libcuda is host
// memory.
//   FAKE_NCCL_VERSION  what ncclGetVersion returns
//   FAKE_NCCL_LOG      text for the log (NCCL_DEBUG_FILE)
//   FAKE_NCCL_FAULT    wrong (one value of each float result), absent (never joins), dies (the
//   process, at the first
//                      float operation), remote (ncclRemoteError instead of it)
//   FAKE_NCCL_RANK     the rank that has the fault

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int success = 0;
constexpr int invalidArgument = 4;
constexpr int remoteError = 6;
constexpr int float32 = 7;
constexpr int maximum = 2;
constexpr std::size_t slotBytes = std::size_t{16} << 20U;
constexpr std::size_t headerBytes = 4096;

struct UniqueId {
  std::array<char, 128> internal;
};

/// At the beginning of the file; then a slot for each rank.
struct Header {
  std::atomic<int> joined;
  std::atomic<int> arrived;
  std::atomic<int> round;
};

struct Communicator {
  int ranks = 0;
  int rank = 0;
  std::string path;
  char* memory = nullptr;

  [[nodiscard]] Header& header() const { return *reinterpret_cast<Header*>(memory); }
  [[nodiscard]] char* slot(int of) const {
    return memory + headerBytes + static_cast<std::size_t>(of) * slotBytes;
  }
  [[nodiscard]] std::size_t bytes() const {
    return headerBytes + static_cast<std::size_t>(ranks) * slotBytes;
  }
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

void writeLog() {
  const std::string path = variable("NCCL_DEBUG_FILE", "");
  if (std::FILE* file = path.empty() ? nullptr : std::fopen(path.c_str(), "a")) {
    std::fputs(
        variable("FAKE_NCCL_LOG", "h:1:1 [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>\n").c_str(),
        file);
    std::fclose(file);
  }
}

void rest() { ::usleep(200); }

/// Joins without waiting for the others.
int join(Communicator& communicator) {
  const int file = ::open(communicator.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(communicator.bytes())) != 0) {
    return invalidArgument;
  }
  void* mapped = ::mmap(nullptr, communicator.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  communicator.memory = static_cast<char*>(mapped);
  ++communicator.header().joined;
  return success;
}

/// Waits until this many more arrivals complete the round.
void arrive(const Communicator& communicator, int arrivals) {
  Header& header = communicator.header();
  const int round = header.round;
  if (header.arrived.fetch_add(arrivals) + arrivals == communicator.ranks) {
    header.arrived = 0;
    ++header.round;
  }
  while (header.round == round) {
    rest();
  }
}

template <typename Number>
void reduce(const Operation& operation) {
  const Communicator& communicator = *operation.communicator;
  auto* result = reinterpret_cast<Number*>(operation.destination);
  for (std::size_t i = 0; i < operation.count; ++i) {
    Number value = reinterpret_cast<const Number*>(communicator.slot(0))[i];
    for (int rank = 1; rank < communicator.ranks; ++rank) {
      const Number other = reinterpret_cast<const Number*>(communicator.slot(rank))[i];
      value = operation.reduction == maximum ? std::max(value, other) : value + other;
    }
    result[i] = value;
  }
}

void finish(const Operation& operation, std::size_t bytes) {
  const Communicator& communicator = *operation.communicator;
  if (operation.reduction < 0) {
    for (int rank = 0; rank < communicator.ranks; ++rank) {
      std::memcpy(operation.destination + static_cast<std::size_t>(rank) * bytes,
                  communicator.slot(rank), bytes);
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

/// All operations of the group together, each on another rank of this process.
int runOperations() {
  const std::vector<Operation> group = std::exchange(operations, {});
  const auto bytesOf = [](const Operation& operation) {
    return operation.count * (operation.type == float32 ? sizeof(float) : sizeof(double));
  };
  for (const Operation& each : group) {
    if (bytesOf(each) > slotBytes) {
      return invalidArgument;
    }
    if (each.type == float32 && hasFault("dies", *each.communicator)) {
      std::_Exit(9);
    }
    if (each.type == float32 && hasFault("remote", *each.communicator)) {
      return remoteError;
    }
    std::memcpy(each.communicator->slot(each.communicator->rank), each.source, bytesOf(each));
  }
  if (!group.empty()) {
    const int here = static_cast<int>(group.size());
    arrive(*group.front().communicator, here);
    for (const Operation& each : group) {
      finish(each, bytesOf(each));
    }
    arrive(*group.front().communicator, here);  // nobody overwrites what another still reads
  }
  return success;
}

int joinAll() {
  for (Communicator* each : std::exchange(joining, {})) {
    while (hasFault("absent", *each)) {
      rest();
    }
    if (const int result = join(*each); result != success) {
      return result;
    }
  }
  return success;
}

int endGroup() {
  const std::vector<Communicator*> joined = joining;
  if (const int result = joinAll(); result != success) {
    return result;
  }
  for (const Communicator* each : joined) {
    while (each->header().joined < each->ranks) {
      rest();
    }
    ::unlink(each->path.c_str());
  }
  return runOperations();
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
  writeLog();
  std::random_device random;
  const std::string path =
      "/dev/shm/fake-nccl-" + std::to_string(random()) + std::to_string(random());
  *id = {};
  std::copy(path.begin(), path.end(), id->internal.begin());
  return success;
}

int ncclCommInitRank(Communicator** made, int ranks, UniqueId id, int rank) {
  if (rank != 0) {
    writeLog();
  }
  *made = new Communicator{ranks, rank, id.internal.data(), nullptr};
  joining.push_back(*made);
  return depth == 0 ? endGroup() : success;
}

int ncclCommDestroy(Communicator* communicator) {
  ::munmap(communicator->memory, communicator->bytes());
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
