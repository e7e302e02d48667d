#include "kernels/cuda/emulator/emulator.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(TROUPE_FIND_RACES)
#include <sanitizer/tsan_interface.h>
#endif

namespace troupe::kernels::cuda::emulator {
namespace {

constexpr size_t kWarpThreads = 32;
constexpr size_t kStackBytes = 128 << 10;

enum class State : uint8_t { kRunnable, kAtBlockBarrier, kAtWarpBarrier, kDone };

struct Copy {
  void* to;
  const void* from;
  size_t bytes, zeros;
};

struct Fiber {
  ucontext_t context;  // where it starts; where it continues, with race detection
  bool begun = false;
  jmp_buf place;  // where it continues
  char* stack = nullptr;
  State state = State::kDone;
  unsigned turn = 0;                     // the next of its warp's two slots
  std::deque<std::vector<Copy>> copies;  // groups; the last one is open
};

// Values that the lanes of a warp exchange. The two slots are used alternately: a lane that writes
// to one has passed the barrier at which all lanes were done with it.
struct WarpSlots {
  char of[2][kWarpThreads][kExchangedBytes];
};

#if defined(TROUPE_FIND_RACES)
// Presents each thread of a block to ThreadSanitizer as a thread: only barriers order two of them,
// not the scheduler's order. The host's own thread precedes and follows all threads of a block.
class Races {
 public:
  void Begin(size_t threads) {
    host_ = __tsan_get_current_fiber();
    while (threads_.size() < threads) threads_.push_back(__tsan_create_fiber(0));
    TROUPE_CHECK(threads <= kMostThreads, "a block has {} threads", threads);
    for (auto& turns : turns_) std::ranges::fill(turns, 0);
    __tsan_release(&begins_);
  }
  void End() { __tsan_acquire(&ends_); }
  void SwitchTo(size_t thread) {
    __tsan_switch_to_fiber(threads_[thread], __tsan_switch_to_fiber_no_sync);
  }
  void SwitchToHost() { __tsan_switch_to_fiber(host_, __tsan_switch_to_fiber_no_sync); }

  // Called by the thread itself.
  void ThreadBegins() { __tsan_acquire(&begins_); }
  void ThreadEnds() { __tsan_release(&ends_); }
  void ComesTo(State barrier, size_t thread) { __tsan_release(PlaceOf(barrier, thread)); }
  void LeavesFrom(State barrier, size_t thread) {
    __tsan_acquire(PlaceOf(barrier, thread));
    turns_[barrier == State::kAtWarpBarrier][thread] ^= 1;
  }

  ~Races() {
    for (void* const thread : threads_) __tsan_destroy_fiber(thread);
  }

 private:
  static constexpr size_t kMostThreads = 1024;
  // The address that represents a barrier to ThreadSanitizer. Two addresses alternate: a thread at
  // the next barrier is independent of those that have not left this one yet.
  char* PlaceOf(State barrier, size_t thread) {
    const bool of_warp = barrier == State::kAtWarpBarrier;
    const int turn = turns_[of_warp][thread];
    return of_warp ? &of_warps_[turn][thread / kWarpThreads] : &of_block_[turn];
  }

  void* host_ = nullptr;
  std::vector<void*> threads_;
  int turns_[2][kMostThreads] = {};  // for each thread's block barriers and warp barriers
  char begins_ = 0, ends_ = 0, of_block_[2] = {}, of_warps_[2][kMostThreads / kWarpThreads] = {};
};
#else
struct Races {
  void Begin(size_t /*threads*/) {}
  void End() {}
  void ThreadBegins() {}
  void ThreadEnds() {}
  void ComesTo(State /*barrier*/, size_t /*thread*/) {}
  void LeavesFrom(State /*barrier*/, size_t /*thread*/) {}
};
#endif

// The block that this host thread runs.
class Block {
 public:
  ~Block() {
    for (const auto& fiber : fibers_) ::munmap(fiber->stack, kStackBytes);
  }

  void Run(const Grid& grid, const std::function<void()>& thread) {
    TROUPE_CHECK(body_ == nullptr, "a kernel runs another kernel");
    grid_ = grid;
    body_ = &thread;
    shared_.resize(grid.shared_bytes + kSharedAlignment);
    while (fibers_.size() < grid.threads) Add();
    slots_.resize(fibers_.size() / kWarpThreads + 1);
    for (place_.y = 0; place_.y < grid.blocks.y; ++place_.y) {
      for (place_.x = 0; place_.x < grid.blocks.x; ++place_.x) RunBlock();
    }
    body_ = nullptr;
  }

  size_t current() const { return current_; }
  const Grid& grid() const { return grid_; }
  BlockPlace place() const { return place_; }
  char* shared() {
    const auto address = reinterpret_cast<uintptr_t>(shared_.data());
    return shared_.data() + (kSharedAlignment - address % kSharedAlignment) % kSharedAlignment;
  }
  Fiber& fiber(size_t index) { return *fibers_[index]; }
  WarpSlots& warp_slots() { return slots_[current_ / kWarpThreads]; }

  // Returns to the scheduler until the barrier opens.
  void WaitAt(State barrier) {
    races_.ComesTo(barrier, current_);
    fibers_[current_]->state = barrier;
    SwitchToScheduler(/*ends=*/false);
    races_.LeavesFrom(barrier, current_);
  }

 private:
  static constexpr size_t kSharedAlignment = 128;

  void Add() {
    auto fiber = std::make_unique<Fiber>();
    void* const stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    TROUPE_CHECK(stack != MAP_FAILED, "there is no stack for a thread of a kernel");
    fiber->stack = static_cast<char*>(stack);
    fibers_.push_back(std::move(fiber));
  }

  static void Enter();

  __attribute__((noinline)) static void Prepare(Fiber& fiber) {
    ::getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    ::makecontext(&fiber.context, &Block::Enter, 0);
    fiber.begun = false;
    fiber.state = State::kRunnable;
    fiber.copies.assign(1, {});
  }

#if !defined(TROUPE_FIND_RACES)
  // Uses jumps, because swapcontext makes a system call. (ThreadSanitizer does not support jumps
  // between stacks.)
  __attribute__((noinline)) static void Jump(Fiber& fiber, jmp_buf& from) {
    if (_setjmp(from) != 0) return;
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    ::setcontext(&fiber.context);
  }
  __attribute__((noinline)) static void JumpBack(Fiber& fiber, jmp_buf& to) {
    if (_setjmp(fiber.place) == 0) _longjmp(to, 1);
  }
#endif

  void RunBlock() {
    for (size_t i = 0; i < grid_.threads; ++i) Prepare(*fibers_[i]);
    races_.Begin(grid_.threads);
    while (RunRunnable()) OpenBarriers();
    races_.End();
  }

  // Runs all runnable threads; returns whether any thread has not ended.
  bool RunRunnable() {
    bool left = false;
    for (current_ = 0; current_ < grid_.threads; ++current_) {
      if (fibers_[current_]->state == State::kRunnable) SwitchToFiber();
      left |= fibers_[current_]->state != State::kDone;
    }
    return left;
  }

  // Called when every thread waits at a barrier or has ended.
  void OpenBarriers() {
    const auto all_are = [this](size_t begin, size_t end, State state) {
      return std::all_of(fibers_.begin() + static_cast<std::ptrdiff_t>(begin),
                         fibers_.begin() + static_cast<std::ptrdiff_t>(end),
                         [state](const auto& fiber) { return fiber->state == state; });
    };
    const auto open = [this](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) fibers_[i]->state = State::kRunnable;
    };
    bool opened = false;
    if (all_are(0, grid_.threads, State::kAtBlockBarrier)) {
      open(0, grid_.threads);
      return;
    }
    for (size_t begin = 0; begin < grid_.threads; begin += kWarpThreads) {
      const size_t end = std::min<size_t>(begin + kWarpThreads, grid_.threads);
      if (!all_are(begin, end, State::kAtWarpBarrier)) continue;
      open(begin, end);
      opened = true;
    }
    TROUPE_CHECK(opened, "threads of a kernel wait at different barriers, or some have ended");
  }

  void SwitchToFiber() {
    Fiber& fiber = *fibers_[current_];
#if defined(__SANITIZE_ADDRESS__)
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, fiber.stack, kStackBytes);
#endif
#if defined(TROUPE_FIND_RACES)
    races_.SwitchTo(current_);
    ::swapcontext(&scheduler_context_, &fiber.context);
#else
    Jump(fiber, scheduler_);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  }

  void SwitchToScheduler([[maybe_unused]] bool ends) {
    Fiber& fiber = *fibers_[current_];
#if defined(__SANITIZE_ADDRESS__)
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(ends ? nullptr : &fake_stack, scheduler_stack_,
                                   scheduler_stack_bytes_);
#endif
#if defined(TROUPE_FIND_RACES)
    races_.SwitchToHost();
    ::swapcontext(&fiber.context, &scheduler_context_);
#else
    JumpBack(fiber, scheduler_);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
  }

  Grid grid_{};
  const std::function<void()>* body_ = nullptr;
  BlockPlace place_{};
  size_t current_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<WarpSlots> slots_;
  std::vector<char> shared_;
  Races races_;
#if defined(TROUPE_FIND_RACES)
  ucontext_t scheduler_context_;
#else
  jmp_buf scheduler_;
#endif
#if defined(__SANITIZE_ADDRESS__)
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
#endif
};

thread_local Block block;

void Block::Enter() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_stack_, &block.scheduler_stack_bytes_);
#endif
  block.races_.ThreadBegins();
  (*block.body_)();
  block.races_.ThreadEnds();
  Fiber& fiber = *block.fibers_[block.current_];
  for (const std::vector<Copy>& group : fiber.copies) {
    TROUPE_CHECK(group.empty(), "a thread of a kernel ends before its copies");
  }
  fiber.state = State::kDone;
  block.SwitchToScheduler(/*ends=*/true);
}

}  // namespace

void RunBlocks(const Grid& grid, const std::function<void()>& thread) { block.Run(grid, thread); }

unsigned ThreadIndex() { return static_cast<unsigned>(block.current()); }
unsigned BlockThreads() { return block.grid().threads; }
BlockPlace BlockIndex() { return block.place(); }
BlockPlace Blocks() { return block.grid().blocks; }
char* DynamicShared() { return block.shared(); }

void SyncBlock() { block.WaitAt(State::kAtBlockBarrier); }
void SyncWarp() { block.WaitAt(State::kAtWarpBarrier); }

const char* Exchange(const void* value, size_t bytes) {
  TROUPE_CHECK(bytes <= kExchangedBytes, "{} bytes do not fit into an exchange", bytes);
  Fiber& fiber = block.fiber(block.current());
  WarpSlots& slots = block.warp_slots();
  const unsigned turn = fiber.turn;
  fiber.turn ^= 1;
  std::memcpy(slots.of[turn][block.current() % kWarpThreads], value, bytes);
  SyncWarp();
  return slots.of[turn][0];
}

void RequireAligned(const void* address, size_t bytes) {
  TROUPE_CHECK(reinterpret_cast<uintptr_t>(address) % bytes == 0,
               "a kernel reads or writes {} bytes at an address that is not a multiple of them",
               bytes);
}

void BeginCopy(void* to, const void* from, size_t bytes, size_t zeros) {
  RequireAligned(to, bytes + zeros);
  RequireAligned(from, bytes + zeros);
  std::memset(to, 0xFF, bytes + zeros);
  block.fiber(block.current()).copies.back().push_back({to, from, bytes, zeros});
}

void EndCopyGroup() { block.fiber(block.current()).copies.emplace_back(); }

void WaitForCopies(int groups) {
  auto& copies = block.fiber(block.current()).copies;
  while (copies.size() > static_cast<size_t>(groups) + 1) {
    for (const Copy& copy : copies.front()) {
      std::memcpy(copy.to, copy.from, copy.bytes);
      std::memset(static_cast<char*>(copy.to) + copy.bytes, 0, copy.zeros);
    }
    copies.pop_front();
  }
}

}  // namespace troupe::kernels::cuda::emulator
