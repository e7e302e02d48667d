#include "collective/nccl/testing/fake_nccl.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collective/nccl/nccl_api.h"

namespace troupe::nccl {
namespace {

FakeNccl fake;
std::mutex mutex;  // guards everything below

enum class Kind : uint8_t {
  kAllReduce,
  kReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kSend,
  kRecv
};

struct Operation {
  Kind kind;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;
  DataType type = kUint8;
  RedOp op = kSum;
  int peer = 0;  // root, or the receiver of a send
  bool done = false;

  bool Matches(const Operation& other) const {
    return kind == other.kind && count == other.count && type == other.type && op == other.op &&
           peer == other.peer;
  }
};
using Shared = std::shared_ptr<Operation>;

struct Clique {
  int ranks = 0;
  int joined = 0;
  bool broken = false;                          // the ranks' calls differ
  std::vector<std::deque<Shared>> collectives;  // by rank, those that wait for others
  std::map<std::pair<int, int>, std::deque<Shared>> sends, receives;  // by {from, to}
};

struct Communicator {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  bool is_alive = true;
  bool is_in = false;  // all ranks have joined
  bool ends = false;   // is being finalized
  std::vector<Shared> pending;
  int polls = 0;
  std::string last_error;
  std::atomic<int> inside{0};  // calls in flight on this communicator
};

std::map<uint64_t, std::shared_ptr<Clique>> cliques;
std::vector<std::unique_ptr<Communicator>> communicators;  // including destroyed ones
uint64_t next_id = 1;

// A call on a communicator; no other call on it may be in flight.
class Entry {
 public:
  explicit Entry(Comm comm) : own_(static_cast<Communicator*>(comm)) {
    if (own_->inside.fetch_add(1) != 0) ++fake.breaches;
    lock_ = std::unique_lock(mutex);
  }
  ~Entry() { own_->inside.fetch_sub(1); }

 private:
  Communicator* const own_;
  std::unique_lock<std::mutex> lock_;
};

thread_local int depth = 0;
thread_local std::vector<std::pair<Communicator*, Shared>> grouped;

size_t SizeOf(DataType type) {
  return type == kFloat32 ? 4 : type == kFloat64 ? 8 : type == kBfloat16 ? 2 : 1;
}

double Read(const void* data, DataType type, size_t i) {
  if (type == kFloat32) return static_cast<const float*>(data)[i];
  if (type == kFloat64) return static_cast<const double*>(data)[i];
  return std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(data)[i]} << 16);
}
void Write(void* data, DataType type, size_t i, double value) {
  if (type == kFloat32) {
    static_cast<float*>(data)[i] = static_cast<float>(value);
  } else if (type == kFloat64) {
    static_cast<double*>(data)[i] = value;
  } else {  // values in tests are exact in bfloat16
    static_cast<uint16_t*>(data)[i] =
        static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
  }
}

// `count` reduced elements, starting at element `begin`.
std::vector<char> Reduced(const std::vector<Shared>& operations, size_t begin, size_t count) {
  const Operation& first = *operations[0];
  std::vector<char> result(count * SizeOf(first.type));
  for (size_t i = 0; i < count; ++i) {
    double value = Read(first.from, first.type, begin + i);
    for (size_t r = 1; r < operations.size(); ++r) {
      const double other = Read(operations[r]->from, first.type, begin + i);
      value = first.op == kMax ? std::max(value, other) : value + other;
    }
    Write(result.data(), first.type, i, value);
  }
  return result;
}

// Computes all results first: outputs may alias inputs of the same rank.
void Perform(const std::vector<Shared>& operations) {
  const Operation& first = *operations[0];
  const size_t ranks = operations.size();
  const size_t bytes = first.count * SizeOf(first.type);
  const auto root = static_cast<size_t>(first.peer);
  std::vector<std::vector<char>> results(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    if (first.kind == Kind::kAllReduce || (first.kind == Kind::kReduce && r == root)) {
      results[r] = Reduced(operations, 0, first.count);
    } else if (first.kind == Kind::kReduceScatter) {
      results[r] = Reduced(operations, r * first.count, first.count);
    } else if (first.kind == Kind::kAllGather) {
      for (const Shared& other : operations) {
        const auto* const block = static_cast<const char*>(other->from);
        results[r].insert(results[r].end(), block, block + bytes);
      }
    } else if (first.kind == Kind::kBroadcast) {
      const auto* const block = static_cast<const char*>(operations[root]->from);
      results[r].assign(block, block + bytes);
    }
  }
  for (size_t r = 0; r < ranks; ++r) {
    std::ranges::copy(results[r], static_cast<char*>(operations[r]->to));
    operations[r]->done = true;
  }
}

void Match(Clique& clique) {
  while (!clique.broken && std::ranges::none_of(clique.collectives, &std::deque<Shared>::empty)) {
    std::vector<Shared> operations;
    for (auto& waiting : clique.collectives) {
      operations.push_back(waiting.front());
      waiting.pop_front();
    }
    clique.broken = !std::ranges::all_of(
        operations, [&](const Shared& operation) { return operation->Matches(*operations[0]); });
    if (!clique.broken) Perform(operations);
  }
  for (auto& [edge, sends] : clique.sends) {
    std::deque<Shared>& receives = clique.receives[edge];
    while (!sends.empty() && !receives.empty() && !clique.broken) {
      clique.broken = sends.front()->count != receives.front()->count;
      std::memcpy(receives.front()->to, sends.front()->from,
                  std::min(sends.front()->count, receives.front()->count));
      sends.front()->done = receives.front()->done = true;
      sends.pop_front();
      receives.pop_front();
    }
  }
}

void Post(Communicator& own, const Shared& operation) {
  Clique& clique = *own.clique;
  if (operation->kind == Kind::kSend) {
    clique.sends[{own.rank, operation->peer}].push_back(operation);
  } else if (operation->kind == Kind::kRecv) {
    clique.receives[{operation->peer, own.rank}].push_back(operation);
  } else {
    clique.collectives[static_cast<size_t>(own.rank)].push_back(operation);
  }
  own.pending.push_back(operation);
  own.polls = fake.polls;
}

Result State(Communicator& own) {
  if (fake.async_result != 0) {
    own.last_error = "the test breaks it";
    return fake.async_result;
  }
  if (own.clique->broken) {
    own.last_error = "the ranks' calls differ";
    return kInvalidUsage;
  }
  own.is_in = own.is_in || own.clique->joined == own.clique->ranks;
  Match(*own.clique);
  const bool done = own.is_in && std::ranges::all_of(own.pending, &Operation::done);
  if (!done || (own.ends && fake.graphs > 0) || own.polls-- > 0) {
    ++fake.in_progress;
    return kInProgress;
  }
  own.pending.clear();
  own.polls = 0;
  return kSuccess;
}

// Counts a breach if an operation may not be called now.
bool IsReady(const Communicator& own) {
  const bool ready = own.is_alive && own.is_in && own.pending.empty();
  if (!ready) ++fake.breaches;
  return ready;
}

Result Issue(Comm comm, const Operation& operation) {
  const Entry entry(comm);
  auto& own = *static_cast<Communicator*>(comm);
  ++fake.calls;
  if (!IsReady(own)) return kInvalidUsage;
  const auto shared = std::make_shared<Operation>(operation);
  if (depth > 0) {
    grouped.emplace_back(&own, shared);
    return kSuccess;
  }
  Post(own, shared);
  return kInProgress;
}

// Ends a communicator; nobody may call it afterwards.
Result End(Comm comm, std::atomic<int>* count) {
  while (fake.graphs > 0) std::this_thread::yield();
  const Entry entry(comm);
  auto& own = *static_cast<Communicator*>(comm);
  if (!own.is_alive) ++fake.breaches;
  own.is_alive = false;
  for (const Shared& operation : own.pending) {
    for (auto& waiting : own.clique->collectives) std::erase(waiting, operation);
    for (auto& [edge, waiting] : own.clique->sends) std::erase(waiting, operation);
    for (auto& [edge, waiting] : own.clique->receives) std::erase(waiting, operation);
  }
  ++*count;
  return kSuccess;
}

}  // namespace

extern "C" {

FakeNccl* TroupeGetFakeNccl() { return &fake; }

Result ncclGetVersion(int* version) {
  *version = fake.version;
  return kSuccess;
}

const char* ncclGetErrorString(Result result) {
  switch (result) {
    case kUnhandledCudaError:
      return "unhandled cuda error";
    case kSystemError:
      return "unhandled system error";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "internal error";
  }
}

const char* ncclGetLastError(Comm comm) {
  return comm == nullptr ? "" : static_cast<Communicator*>(comm)->last_error.c_str();
}

Result ncclGetUniqueId(UniqueId* id) {
  if (fake.unique_id_result != 0) return fake.unique_id_result;
  const std::lock_guard lock(mutex);
  ++fake.unique_ids;
  std::memcpy(id->internal, &next_id, sizeof(next_id));
  ++next_id;
  return kSuccess;
}

Result ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  ++fake.inits;
  if (fake.init_result != 0) return fake.init_result;
  if (config->magic != 0xcafebeef || config->blocking != 0 || config->comm_name == nullptr)
    return kInvalidUsage;
  if (config->max_ctas > 0) ++fake.limited_inits;
  const std::lock_guard lock(mutex);
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  std::shared_ptr<Clique>& clique = cliques[number];
  if (clique == nullptr) clique = std::make_shared<Clique>();
  clique->ranks = ranks;
  clique->collectives.resize(static_cast<size_t>(ranks));
  ++clique->joined;
  communicators.push_back(std::make_unique<Communicator>());
  Communicator& own = *communicators.back();
  own.clique = clique;
  own.rank = rank;
  own.polls = fake.polls;
  *comm = &own;
  return kInProgress;
}

Result ncclCommGetAsyncError(Comm comm, Result* error) {
  const Entry entry(comm);
  auto& own = *static_cast<Communicator*>(comm);
  if (!own.is_alive) {
    ++fake.breaches;
    return kInvalidArgument;
  }
  *error = State(own);
  return kSuccess;
}

Result ncclCommFinalize(Comm comm) {
  const Entry entry(comm);
  auto& own = *static_cast<Communicator*>(comm);
  if (!IsReady(own)) return kInvalidUsage;
  own.ends = true;
  own.polls = fake.polls;
  return kInProgress;
}
Result ncclCommDestroy(Comm comm) { return End(comm, &fake.destroys); }
Result ncclCommAbort(Comm comm) { return End(comm, &fake.aborts); }

Result ncclAllReduce(const void* send, void* receive, size_t count, DataType type, RedOp op,
                     Comm comm, CudaStream) {
  return Issue(comm, {Kind::kAllReduce, send, receive, count, type, op});
}
Result ncclReduce(const void* send, void* receive, size_t count, DataType type, RedOp op, int root,
                  Comm comm, CudaStream) {
  return Issue(comm, {Kind::kReduce, send, receive, count, type, op, root});
}
Result ncclReduceScatter(const void* send, void* receive, size_t count, DataType type, RedOp op,
                         Comm comm, CudaStream) {
  return Issue(comm, {Kind::kReduceScatter, send, receive, count, type, op});
}
Result ncclAllGather(const void* send, void* receive, size_t count, DataType type, Comm comm,
                     CudaStream) {
  return Issue(comm, {Kind::kAllGather, send, receive, count, type});
}
Result ncclBroadcast(const void* send, void* receive, size_t count, DataType type, int root,
                     Comm comm, CudaStream) {
  return Issue(comm, {Kind::kBroadcast, send, receive, count, type, kSum, root});
}
Result ncclSend(const void* data, size_t count, DataType type, int peer, Comm comm, CudaStream) {
  return Issue(comm, {Kind::kSend, data, nullptr, count, type, kSum, peer});
}
Result ncclRecv(void* data, size_t count, DataType type, int peer, Comm comm, CudaStream) {
  return Issue(comm, {Kind::kRecv, nullptr, data, count, type, kSum, peer});
}

Result ncclGroupStart() {
  ++depth;
  return kSuccess;
}
Result ncclGroupEnd() {
  if (--depth > 0) return kSuccess;
  const std::lock_guard lock(mutex);
  for (const auto& [own, operation] : std::exchange(grouped, {})) Post(*own, operation);
  return kInProgress;
}

}  // extern "C"

}  // namespace troupe::nccl
