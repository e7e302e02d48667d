#include "model/program/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "model/pair_order.h"
#include "model/program/storage.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

// An independent model of storage: a write stamps every 4 bytes with the written value, and a read
// checks that the stamp is still that of the value (or of rows of it).
class StampedMemory {
 public:
  StampedMemory(const Program& program, const MemoryPlan& plan)
      : program_(program),
        plan_(plan),
        persistent_(Words(plan.persistent_bytes)),
        temporary_(Words(plan.temporary_bytes)) {
    for (size_t c = 0; c < plan.saved_bytes.size(); ++c) {
      saved_.emplace_back(plan.buffers[c],
                          std::vector<ValueId>(Words(plan.saved_bytes[c]), kNoValue));
    }
    for (const Value& value : program.values) {
      const bool given = value.role == Role::kParameter || value.role == Role::kComputeCopy ||
                         value.role == Role::kGradient || value.role == Role::kOptimizerState ||
                         value.chunk < 0;
      if (given && value.view_of == kNoValue) Write(value.id, 0);
    }
  }

  // Writes the values that the executor and neighbouring chunks write before F and before B.
  void WriteInputs(int chunk_index, int buffer) {
    const ChunkInterface& chunk = program_.chunks[chunk_index];
    std::vector<ValueId> inputs = {chunk.input, chunk.output_gradient};
    for (const ChannelInput& read : chunk.channels) inputs.push_back(read.value);
    for (const ValueId id : inputs) {
      if (id != kNoValue) Write(id, buffer);
    }
  }

  void Run(int chunk_index, Piece piece, int buffer) {
    RunPart(chunk_index, piece, buffer, 0,
            static_cast<int>(program_.Ops(chunk_index, piece).size()));
  }

  void RunPart(int chunk_index, Piece piece, int buffer, int first, int end) {
    const std::vector<Op>& ops = program_.Ops(chunk_index, piece);
    for (int i = first; i < end; ++i) {
      const Op& op = ops[static_cast<size_t>(i)];
      if (op.asynchronous) in_flight_[op.outputs[0]] = &op;
      if (op.kind == OpKind::kWait) {
        // An asynchronous collective reads its inputs and writes its outputs until its wait.
        const Op& begun = *in_flight_.at(op.inputs[0]);
        ReadApartFromOutputs(begun, buffer, "at the wait of ");
        for (const ValueId id : begun.outputs) Write(id, buffer);
        continue;
      }
      for (const ValueId id : op.inputs) Read(id, buffer, ToText(op, program_));
      for (const ValueId id : op.outputs) {
        // A copy moves nothing: both names stay valid.
        if (op.kind != OpKind::kCopy) Write(id, buffer);
      }
      // Outputs overlap inputs only if they are declared as views.
      ReadApartFromOutputs(op, buffer, "after ");
    }
  }

  void ReadApartFromOutputs(const Op& op, int buffer, const std::string& when) {
    for (const ValueId id : op.inputs) {
      const bool in_place = std::any_of(op.outputs.begin(), op.outputs.end(), [&](ValueId output) {
        return StorageRoot(program_, output) == StorageRoot(program_, id);
      });
      if (!in_place) Read(id, buffer, when + ToText(op, program_));
    }
  }

  void Read(ValueId id, int buffer, const std::string& by) {
    const Value& value = program_.value(id);
    const auto [words, begin] = Place(id, buffer);
    for (int64_t w = 0; w < Words(value.bytes()); ++w) {
      const ValueId stamp = (*words)[begin + w];
      ASSERT_TRUE(stamp != kNoValue && SameData(stamp, id))
          << by << " reads " << value.name << " but finds "
          << (stamp == kNoValue ? "nothing" : program_.value(stamp).name);
    }
  }

 private:
  static int64_t Words(int64_t bytes) { return bytes / 4 + (bytes % 4 != 0); }

  std::pair<std::vector<ValueId>*, int64_t> Place(ValueId id, int buffer) {
    const Location& location = plan_.locations[id];
    std::vector<ValueId>* words = location.region == Region::kPersistent ? &persistent_
                                  : location.region == Region::kTemporary
                                      ? &temporary_
                                      : &saved_[location.chunk_index][buffer];
    EXPECT_EQ(location.offset % 4, 0);
    EXPECT_LE(location.offset / 4 + Words(program_.value(id).bytes()),
              static_cast<int64_t>(words->size()));
    return {words, location.offset / 4};
  }

  void Write(ValueId id, int buffer) {
    const auto [words, begin] = Place(id, buffer);
    std::fill_n(words->begin() + begin, Words(program_.value(id).bytes()), id);
  }

  // Rows and copies are the same data as their whole value; values written in place are not.
  ValueId DataOf(ValueId id) const {
    while (program_.value(id).view_of != kNoValue && (IsRows(id) || copies_.contains(id)))
      id = program_.value(id).view_of;
    return id;
  }
  bool SameData(ValueId a, ValueId b) const { return DataOf(a) == DataOf(b); }
  bool IsRows(ValueId id) const {
    const Value& value = program_.value(id);
    return value.dims[0].local < program_.value(value.view_of).dims[0].local;
  }

  const Program& program_;
  const MemoryPlan& plan_;
  std::map<ValueId, const Op*> in_flight_;
  std::vector<ValueId> persistent_, temporary_;
  std::vector<std::vector<std::vector<ValueId>>> saved_;  // by chunk index and buffer
  const std::map<ValueId, bool> copies_ = [this] {
    std::map<ValueId, bool> copies;
    for (const auto& pieces : program_.ops) {
      for (const auto& ops : pieces) {
        for (const Op& op : ops) {
          if (op.kind == OpKind::kCopy) copies[op.outputs[0]] = true;
        }
      }
    }
    return copies;
  }();
};

std::vector<BuildOptions> Cases() {
  std::vector<BuildOptions> cases;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const bool fuse : {true, false}) {
      for (const int pipe : {1, 2}) {
        for (int stage = 0; stage < pipe; ++stage) {
          MeshView mesh;
          mesh.degrees[Axis::kPipe] = pipe;
          mesh.coordinates[Axis::kPipe] = stage;
          mesh.degrees[Axis::kTensor] = 2;
          mesh.coordinates[Axis::kTensor] = 1;
          BuildOptions options = StageOptions(SmallModel("ADAD"), mesh, 2, 8);
          options.compute_dtype = dtype;
          options.fuse = fuse;
          cases.push_back(options);
          if (!fuse || dtype != DType::kBFloat16) continue;
          options.sequence_length = 1030;  // two row chunks of the head
          cases.push_back(options);
          options.sequence_length = 8;
          options.mesh.degrees[Axis::kDataShard] = 3;
          options.mesh.coordinates[Axis::kDataShard] = 1;
          options.zero_stage = 3;
          options.bucket_elements = 500;
          cases.push_back(options);
        }
      }
    }
  }
  return cases;
}

TEST(PlanMemoryTest, NoValueIsOverwrittenWhileItIsStillNeeded) {
  for (const BuildOptions& options : Cases()) {
    const Program program = BuildProgram(options).value();
    for (const bool split : {false, true}) {
      const MemoryPlan plan = PlanMemory(program, {2}, split, 2);
      StampedMemory memory(program, plan);
      memory.Run(0, Piece::kUnshard, 0);
      const auto backward = [&](int buffer) {
        if (split) return memory.Run(0, Piece::kInputGradient, buffer);
        memory.Run(0, Piece::kBackward, buffer);
      };
      for (const int buffer : {0, 1}) {
        memory.WriteInputs(0, buffer);
        memory.Run(0, Piece::kForward, buffer);
      }
      backward(0);
      backward(1);
      if (split) {
        memory.Run(0, Piece::kWeightGradient, 0);
        memory.Run(0, Piece::kWeightGradient, 1);
      }
      const ChunkInterface& chunk = program.chunks[0];
      for (const int buffer : {0, 1}) {
        for (const ValueId sent : {chunk.output, chunk.input_gradient}) {
          if (sent != kNoValue) memory.Read(sent, buffer, "send");
        }
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(PlanMemoryTest, NoValueOfAnInterleavedPairIsOverwrittenByTheOtherSide) {
  MeshView mesh;
  mesh.degrees[Axis::kExpert] = 2;
  BuildOptions options = StageOptions(SmallMixture("AEAE"), mesh, 2, 8);
  options.chunks = {{0, 0, 2, true, false}, {1, 2, 2, false, true}};
  options.interleaves_pairs = true;
  Program program = BuildProgram(options).value();
  const std::vector<Piece> backward = {Piece::kInputGradient, Piece::kWeightGradient};
  const MemoryPlan plan = PlanMemory(program, {2, 2}, true, 1);
  StampedMemory memory(program, plan);
  for (const int chunk : {0, 1}) {
    memory.Run(chunk, Piece::kUnshard, 0);
    memory.WriteInputs(chunk, 0);
    memory.Run(chunk, Piece::kForward, 0);
  }
  // F of microbatch 1 with the backward of microbatch 0.
  for (const auto& [forward_chunk, backward_chunk] : {std::pair(0, 1), std::pair(1, 0)}) {
    memory.WriteInputs(forward_chunk, 1);
    for (const PieceRun& run : InterleavePair(program, forward_chunk, backward_chunk, backward)) {
      const bool is_forward = run.piece == 0;
      memory.RunPart(is_forward ? forward_chunk : backward_chunk,
                     is_forward ? Piece::kForward : backward[static_cast<size_t>(run.piece - 1)],
                     is_forward ? 1 : 0, run.begin, run.end);
    }
  }
  EXPECT_NE(plan.peak_text.find("pairs are interleaved"), std::string::npos) << plan.peak_text;
  // Without interleaving, both sides share the same memory.
  program.interleaves_pairs = false;
  const MemoryPlan shared = PlanMemory(program, {2, 2}, true, 1);
  EXPECT_GT(plan.temporary_bytes, shared.temporary_bytes);
  EXPECT_LE(plan.temporary_bytes, 2 * shared.temporary_bytes);
}

TEST(PlanMemoryTest, GradientsAndStatesLieInTheOrderOfTheirParameters) {
  for (const BuildOptions& options : Cases()) {
    const Program program = BuildProgram(options).value();
    const MemoryPlan plan = PlanMemory(program, {1}, false, 1);
    const auto member = [](const ParameterEntry& entry, int which) {
      if (which < 2) return which == 0 ? entry.value : entry.gradient;
      return entry.optimizer_states[static_cast<size_t>(which) - 2];
    };
    for (int which = 0; which < 4; ++which) {
      int64_t next = plan.locations[member(program.parameters[0], which)].offset;
      for (const ParameterEntry& entry : program.parameters) {
        const ValueId value = member(entry, which);
        EXPECT_EQ(plan.locations[value].region, Region::kPersistent);
        EXPECT_EQ(plan.locations[value].offset, next);
        EXPECT_EQ(plan.locations[value].offset % 64, 0);
        next = (plan.locations[value].offset + program.value(value).bytes() + 63) / 64 * 64;
      }
    }
  }
}

TEST(PlanMemoryTest, SavesOnlyWhatBackwardNeedsAndPrintsThePeak) {
  const Program program = BuildProgram(StageOptions(Llama124m(), {}, 4, 256)).value();
  const MemoryPlan plan = PlanMemory(program, {1}, false, 2);
  int64_t saved = 0;
  for (const Value& value : program.values) {
    const bool keeps =
        value.role == Role::kSaved || (value.role == Role::kInput && value.chunk >= 0);
    if (keeps && value.view_of == kNoValue) saved += (value.bytes() + 63) / 64 * 64;
  }
  EXPECT_LE(plan.saved_bytes[0], saved);
  EXPECT_GE(plan.saved_bytes[0], saved * 9 / 10);
  // Master, gradient and two moments of 124M parameters in float32.
  EXPECT_NEAR(static_cast<double>(plan.persistent_bytes), 16.0 * 123.6e6, 16e6);
  EXPECT_NE(ToText(plan, program).find("in use in"), std::string::npos) << ToText(plan, program);
  const MemoryPlan four = PlanMemory(program, {4}, false, 2);
  EXPECT_EQ(four.total_bytes() - plan.total_bytes(), 3 * plan.saved_bytes[0]);
}

}  // namespace
}  // namespace troupe::model
