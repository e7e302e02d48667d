#include "model/program/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "model/program/lifetime.h"
#include "model/program/op_rules.h"
#include "model/program/storage.h"

namespace troupe::model {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The pieces that a microbatch runs, in order; their operations are numbered consecutively.
std::vector<Piece> MicrobatchPieces(bool split_backward) {
  if (split_backward) return {Piece::kForward, Piece::kInputGradient, Piece::kWeightGradient};
  return {Piece::kForward, Piece::kBackward};
}

std::string Bytes(int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

class Planner {
 public:
  Planner(const Program& program, const std::vector<int>& buffers, bool split_backward, int threads)
      : program_(program),
        pieces_(MicrobatchPieces(split_backward)),
        roots_(StorageRoots(program)) {
    TROUPE_CHECK(buffers.size() == program.chunks.size(), "there are {} buffers for {} chunks",
                 buffers.size(), program.chunks.size());
    plan_.locations.resize(program.values.size());
    plan_.saved_bytes.resize(program.chunks.size());
    plan_.buffers = buffers;
    plan_.split_backward = split_backward;
    plan_.scratch_bytes = Scratch(threads);
  }

  MemoryPlan Plan() {
    PlacePersistent();
    for (int c = 0; c < static_cast<int>(program_.chunks.size()); ++c) PlaceChunk(c);
    PlaceTemporaries();
    for (const Value& value : program_.values) {
      const auto [root, offset] = StorageOf(program_, value.id);
      plan_.locations[value.id] = plan_.locations[root];
      plan_.locations[value.id].offset += offset;
    }
    return std::move(plan_);
  }

 private:
  // The temporaries of one piece of a chunk.
  struct Temporaries {
    int chunk_index = 0;
    size_t piece = 0;  // index in pieces_
    std::vector<Lifetime> lifetimes;
    int64_t bytes = 0;
  };

  int64_t Scratch(int threads) const {
    int64_t most = 0;
    for (int c = 0; c < static_cast<int>(program_.chunks.size()); ++c) {
      for (const Piece piece : pieces_) {
        for (const Op& op : program_.Ops(c, piece)) {
          const auto scratch = RulesOf(op.kind).scratch_bytes;
          if (scratch != nullptr) most = std::max(most, Align(scratch(op, program_, threads)));
        }
      }
    }
    return most;
  }

  void PlacePersistent() {
    // The states first, in the order of their table. Masters that are blocks of gathered copies lie
    // in those.
    for (const State& state : program_.states) {
      if (IsView(state.value)) continue;  // the master is a block of the gathered copy
      if (state.parameter >= 0) AlignTo(BucketAlignment(program_));
      Place(state.value);
    }
    for (const auto member :
         {&ParameterEntry::compute_copy, &ParameterEntry::gathered, &ParameterEntry::converted}) {
      for (const ParameterEntry& entry : program_.parameters) {
        const ValueId id = entry.*member;
        if (id == entry.value || id == kNoValue || IsView(id)) continue;
        AlignTo(BucketAlignment(program_));
        Place(id);
      }
    }
    PlaceGradients();
    for (const ValueId id : program_.router_totals) Place(id);
    for (const ValueId id : program_.quantized_weights) Place(id);
    // One contiguous range, which is reduced at once.
    for (const AmaxHistory& entry : program_.amax_histories) Place(entry.amax);
    for (const ValueId id :
         {program_.loss_totals, program_.control_word, program_.halted, program_.learning_rate}) {
      if (id != kNoValue) Place(id);
    }
  }

  // Buckets of gradients are padded ranges.
  void PlaceGradients() {
    int64_t bucket_begin = 0;
    for (const ParameterEntry& entry : program_.parameters) {
      if (!entry.trained() || IsView(entry.gradient)) continue;
      AlignTo(BucketAlignment(program_));
      if (entry.begins_bucket) bucket_begin = plan_.persistent_bytes;
      Place(entry.gradient);
      if (!entry.ends_bucket) continue;
      plan_.persistent_bytes =
          bucket_begin + PaddedBucketBytes(program_, plan_.persistent_bytes - bucket_begin);
    }
  }

  bool IsView(ValueId id) const { return program_.value(id).view_of != kNoValue; }

  void Place(ValueId id) {
    plan_.locations[id] = {Region::kPersistent, -1, plan_.persistent_bytes};
    plan_.persistent_bytes += Align(program_.value(id).bytes());
  }

  void AlignTo(int64_t bytes) {
    plan_.persistent_bytes = (plan_.persistent_bytes + bytes - 1) / bytes * bytes;
  }

  void PlaceChunk(int chunk_index) {
    std::vector<Lifetime> lifetimes = Lifetimes(chunk_index);
    std::vector<Lifetime*> saved;
    std::vector<Temporaries> temporary(pieces_.size());
    for (Lifetime& lifetime : lifetimes) {
      if (lifetime.first_piece != lifetime.last_piece) {
        saved.push_back(&lifetime);
      } else {
        temporary[static_cast<size_t>(lifetime.first_piece)].lifetimes.push_back(lifetime);
      }
    }
    plan_.saved_bytes[chunk_index] = Pack(saved);
    for (const Lifetime* lifetime : saved) {
      plan_.locations[lifetime->root] = {Region::kSaved, chunk_index, lifetime->offset};
    }
    for (size_t p = 0; p < pieces_.size(); ++p) {
      std::vector<Lifetime*> packed;
      for (Lifetime& lifetime : temporary[p].lifetimes) packed.push_back(&lifetime);
      temporary[p].chunk_index = chunk_index;
      temporary[p].piece = p;
      temporary[p].bytes = Pack(packed);
      temporaries_.push_back(std::move(temporary[p]));
    }
  }

  // If pairs are interleaved, F of one chunk runs while a backward piece of another is in progress,
  // so their temporaries share no memory.
  void PlaceTemporaries() {
    int64_t forward_bytes = 0, backward_bytes = 0, most = 0;
    for (const Temporaries& piece : temporaries_) {
      int64_t& bytes = piece.piece == 0 ? forward_bytes : backward_bytes;
      bytes = std::max(bytes, piece.bytes);
    }
    const int64_t backward_begin = program_.interleaves_pairs ? forward_bytes : 0;
    plan_.temporary_bytes = std::max(forward_bytes, backward_begin + backward_bytes);
    for (Temporaries& piece : temporaries_) {
      for (Lifetime& lifetime : piece.lifetimes) {
        if (piece.piece > 0) lifetime.offset += backward_begin;
        plan_.locations[lifetime.root] = {Region::kTemporary, -1, lifetime.offset};
      }
      if (piece.bytes <= most) continue;
      most = piece.bytes;
      DescribePeak(piece.chunk_index, pieces_[piece.piece], piece.lifetimes);
    }
    if (backward_begin == 0 || backward_bytes == 0) return;
    plan_.peak_text += fmt::format(
        "  pairs are interleaved: {} of temporaries of F and {} of a backward action share no "
        "memory\n",
        Bytes(forward_bytes), Bytes(backward_bytes));
  }

  // The lifetimes of all non-persistent storage of the chunk.
  std::vector<Lifetime> Lifetimes(int chunk_index) {
    std::vector<Lifetime> lifetimes;
    std::vector<int> index(program_.values.size(), -1);
    const auto touch = [&](ValueId id, int number, int piece) {
      const Value& root = program_.value(roots_[id]);
      if (IsPersistent(root)) return;
      if (index[root.id] < 0) {
        index[root.id] = static_cast<int>(lifetimes.size());
        lifetimes.push_back({root.id, Align(root.bytes()), number, number, piece, piece});
      }
      Lifetime& lifetime = lifetimes[index[root.id]];
      lifetime.end = number;
      lifetime.last_piece = piece;
    };
    int number = 0;
    for (int p = 0; p < static_cast<int>(pieces_.size()); ++p) {
      for (const Op& op : program_.Ops(chunk_index, pieces_[p])) {
        for (const ValueId id : op.inputs) touch(id, number, p);
        for (const ValueId id : op.outputs) touch(id, number, p);
        ++number;
      }
    }
    // Values that others write or read keep their storage all the time, even if no operation uses
    // them.
    const ChunkInterface& chunk = program_.chunks[chunk_index];
    std::vector<ValueId> crossing = {chunk.input, chunk.output, chunk.output_gradient,
                                     chunk.input_gradient};
    for (const ChannelInput& read : chunk.channels) crossing.push_back(read.value);
    for (const ValueId id : crossing) {
      if (id == kNoValue) continue;
      touch(id, number, 0);
      Lifetime& lifetime = lifetimes[index[roots_[id]]];
      lifetime.begin = 0;
      lifetime.first_piece = 0;
      lifetime.end = number;
      lifetime.last_piece = static_cast<int>(pieces_.size());
    }
    return lifetimes;
  }

  void DescribePeak(int chunk_index, Piece piece, const std::vector<Lifetime>& lifetimes) {
    int first = 0;
    for (const Piece before : pieces_) {
      if (before == piece) break;
      first += static_cast<int>(program_.Ops(chunk_index, before).size());
    }
    const std::vector<Op>& ops = program_.Ops(chunk_index, piece);
    std::vector<int64_t> change(ops.size() + 1);
    for (const Lifetime& lifetime : lifetimes) {
      change[static_cast<size_t>(lifetime.begin - first)] += lifetime.bytes;
      change[static_cast<size_t>(lifetime.end - first) + 1] -= lifetime.bytes;
    }
    int64_t most = -1, alive = 0;
    int peak = first;
    for (size_t i = 0; i < ops.size(); ++i) {
      alive += change[i];
      if (alive > most) {
        most = alive;
        peak = first + static_cast<int>(i);
      }
    }
    plan_.peak_text =
        fmt::format("{} of temporaries in use in {} of chunk {} at {}\n", Bytes(most), Name(piece),
                    program_.chunks[chunk_index].chunk, ToText(ops[peak - first], program_));
    for (const Lifetime& lifetime : lifetimes) {
      if (lifetime.begin > peak || peak > lifetime.end) continue;
      plan_.peak_text += fmt::format("  {:>10} at {:>10}  {}\n", Bytes(lifetime.bytes),
                                     lifetime.offset, program_.value(lifetime.root).name);
    }
  }

  const Program& program_;
  const std::vector<Piece> pieces_;
  std::vector<ValueId> roots_;
  std::vector<Temporaries> temporaries_;
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan PlanMemory(const Program& program, const std::vector<int>& buffers, bool split_backward,
                      int threads) {
  return Planner(program, buffers, split_backward, threads).Plan();
}

std::string ToText(const MemoryPlan& plan, const Program& program) {
  std::string text = fmt::format("persistent {}\n", Bytes(plan.persistent_bytes));
  for (size_t c = 0; c < plan.saved_bytes.size(); ++c) {
    text += fmt::format("saved {} × {} of chunk {}\n", plan.buffers[c], Bytes(plan.saved_bytes[c]),
                        program.chunks[c].chunk);
  }
  text += fmt::format("temporary {}\nscratch {}\ntotal {}\n", Bytes(plan.temporary_bytes),
                      Bytes(plan.scratch_bytes), Bytes(plan.total_bytes()));
  return text + plan.peak_text;
}

}  // namespace troupe::model
