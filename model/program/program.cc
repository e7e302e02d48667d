#include "model/program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::model {
namespace {

// Empty for blocks without units or owner.
std::string CutText(const RowCut& cut) {
  if (cut.owner >= 0) return fmt::format(" whole on {}", cut.owner);
  return cut.unit > 1 ? fmt::format(" in units of {}", cut.unit) : std::string();
}

std::string PartsText(int parts) {
  return parts > 1 ? fmt::format(" in {} parts", parts) : std::string();
}

std::string WireText(DType wire) {
  return wire == DType::kFloat32 ? std::string() : fmt::format(", wire {}", Name(wire));
}

std::string CollectiveText(const CollectiveAttributes& a, const std::string& details) {
  return fmt::format("{}{}, purpose {}", ToText(a.group), details, Name(a.purpose));
}

struct AttributesText {
  std::string operator()(const NoAttributes&) const { return {}; }
  std::string operator()(const NormAttributes& a) const { return fmt::format("eps {:g}", a.eps); }
  std::string operator()(const VocabAttributes& a) const {
    return fmt::format("vocab_offset {}", a.vocab_offset);
  }
  std::string operator()(const LossAttributes& a) const {
    return a.z_loss_coef > 0 ? fmt::format("z {:g}", a.z_loss_coef) : std::string();
  }
  std::string operator()(const DropoutAttributes& a) const {
    std::string text =
        fmt::format("p {:g}, key {:016x}, tokens {}", a.probability, a.key, a.tokens);
    if (a.held.rows != a.tokens) {
      text += fmt::format(", rows {} from {} and {}", a.held.rows, a.held.head, a.held.tail);
    }
    if (a.own.first != 0) text += fmt::format(", first_row {}", a.own.first);
    if (a.own.block != 0) text += fmt::format(", blocks of {} every {}", a.own.block, a.own.stride);
    return text;
  }
  std::string operator()(const AttentionAttributes& a) const {
    return fmt::format("heads {}/{} of {}, tokens {}, mask {}", a.query_heads, a.key_value_heads,
                       a.head_dim, a.tokens,
                       a.mask.kind == Mask::Kind::kDocument ? "document" : "causal");
  }
  std::string operator()(const PartAttributes& a) const {
    return fmt::format("part {}{}, {}", a.shift, a.last ? " last" : "", (*this)(a.attention));
  }
  std::string operator()(const RopeAttributes& a) const {
    std::string text = fmt::format("heads {}/{} of {}, theta {:g}", a.query_heads,
                                   a.key_value_heads, a.head_dim, a.theta);
    if (a.scaling.factor != 1.0) {
      text +=
          fmt::format(", scaling {:g} {:g} {:g} {}", a.scaling.factor, a.scaling.low_freq_factor,
                      a.scaling.high_freq_factor, a.scaling.original_max_position_embeddings);
    }
    if (a.buffer != DType::kFloat32) text += fmt::format(", sines in {}", Name(a.buffer));
    return a.inverse ? text + ", inverse" : text;
  }
  std::string operator()(const CollectiveAttributes& a) const { return CollectiveText(a, ""); }
  std::string operator()(const AllReduceAttributes& a) const {
    return CollectiveText(a, a.reduce == ReduceKind::kMax ? " max" : "") + WireText(a.wire);
  }
  std::string operator()(const ReduceScatterAttributes& a) const {
    return CollectiveText(a, CutText(a.cut) + PartsText(a.row_parts)) + WireText(a.wire);
  }
  std::string operator()(const AllGatherAttributes& a) const {
    return CollectiveText(a, fmt::format("{}{}{}{}", a.replicated ? " replicated" : "",
                                         a.extent != 0 ? fmt::format(" extent {}", a.extent) : "",
                                         CutText(a.cut), PartsText(a.row_parts)));
  }
  std::string operator()(const RelayoutAttributes& a) const {
    return CollectiveText(a, fmt::format(" {} samples {}", a.samples,
                                         a.to_head_tail ? "to head and tail" : "to contiguous"));
  }
  std::string operator()(const ShiftAttributes& a) const {
    return CollectiveText(a, fmt::format(" by {}", a.shift));
  }
  std::string operator()(const RouterAttributes& a) const {
    std::string text = fmt::format("{}{}, {} of {} experts, tokens {}",
                                   a.score == RouterScore::kSoftmax ? "softmax" : "sigmoid",
                                   a.normalise ? " normalised" : "", a.top_k, a.experts, a.tokens);
    if (a.capacity > 0) text += fmt::format(", capacity {}", a.capacity);
    if (a.aux_loss_coef > 0) text += fmt::format(", aux {:g}", a.aux_loss_coef);
    if (a.z_loss_coef > 0) text += fmt::format(", z {:g}", a.z_loss_coef);
    return text;
  }
  std::string operator()(const RouterBiasAttributes& a) const {
    return fmt::format("rate {:g}", a.rate);
  }
  std::string operator()(const GroupedAttributes& a) const {
    return fmt::format("{} of {} experts, {} rows expected", a.local_experts, a.experts,
                       a.expected_rows);
  }
  std::string operator()(const QuantizeAttributes& a) const {
    const std::string source =
        a.source == QuantizeSource::kValue ? "" : fmt::format("of {}, ", Name(a.source));
    return fmt::format(
        "{}{}{}{}{}{}", source, Name(a.format), a.rows ? ", rows" : "",
        a.columns ? ", columns" : "",
        a.block_rows > 0 ? fmt::format(", blocks {} x {}", a.block_rows, kFloat8Block) : "",
        a.folds ? ", folds" : "");
  }
  std::string operator()(const ControlAttributes& a) const {
    return fmt::format("rank {}", a.rank);
  }
  std::string operator()(const AdamWAttributes& a) const {
    return fmt::format("betas {:g} {:g}, eps {:g}, weight_decay {:g}, max_norm {:g}", a.beta1,
                       a.beta2, a.eps, a.weight_decay, a.max_norm);
  }
  std::string operator()(const SgdAttributes& a) const {
    return fmt::format("momentum {:g}{}, weight_decay {:g}, max_norm {:g}", a.momentum,
                       a.nesterov ? " nesterov" : "", a.weight_decay, a.max_norm);
  }
};

std::string ToText(const Value& value) {
  std::string text = fmt::format("%{} {} {}[", value.id, value.name, Name(value.dtype));
  for (size_t d = 0; d < value.dims.size(); ++d) {
    const Dim& dim = value.dims[d];
    text += fmt::format("{}{} {}", d ? ", " : "", dim.name, dim.local);
    if (dim.local != dim.global) text += fmt::format("/{}", dim.global);
  }
  text += ']';
  for (const Segment& segment : value.segments)
    text += fmt::format(" {}:{}", segment.name, segment.local);
  text += fmt::format(" @ {}, {}", ToText(value.placement), Name(value.role));
  if (value.view_of != kNoValue) {
    text += fmt::format(", in %{}", value.view_of);
    if (value.view_offset != 0) text += fmt::format("+{}", value.view_offset);
  }
  return text;
}

void AppendIds(std::string& text, const std::vector<ValueId>& ids) {
  for (size_t i = 0; i < ids.size(); ++i)
    fmt::format_to(std::back_inserter(text), "{}%{}", i ? ", " : "", ids[i]);
}

void AppendOps(std::string& text, const char* title, const std::vector<Op>& ops,
               const Program& program) {
  if (ops.empty()) return;
  text += fmt::format("  {}\n", title);
  for (const Op& op : ops) text += fmt::format("    {}\n", ToText(op, program));
}

}  // namespace

const char* Name(Piece piece) {
  static constexpr const char* kNames[kNumPieces] = {
      "unshard", "forward", "backward", "input_gradient", "weight_gradient", "reduce", "update"};
  return kNames[static_cast<int>(piece)];
}

int RankNumber(const MeshView& mesh) {
  int rank = 0;
  for (int a = 0; a < kNumAxes; ++a) rank = rank * mesh.degrees.of[a] + mesh.coordinates.of[a];
  return rank;
}

std::string ToText(const Op& op, const Program& program) {
  std::string text;
  AppendIds(text, op.outputs);
  text += fmt::format("{}{}(", op.outputs.empty() ? "" : " = ", Name(op.kind));
  AppendIds(text, op.inputs);
  text += ')';
  const std::string attributes = std::visit(AttributesText(), op.attributes);
  if (!attributes.empty()) text += fmt::format(" {{{}}}", attributes);
  if (op.part == Part::kInputGradient) text += " I";
  if (op.part == Part::kWeightGradient) text += " W";
  if (op.first_writer) text += " first_writer";
  if (op.consumes_input) text += " consumes_input";
  if (op.asynchronous) text += " asynchronous";
  if (op.last_microbatch) text += " last_microbatch";
  if (op.gradient_in_forward) text += " gradient_in_forward";
  if (op.row_chunk >= 0) text += fmt::format(" row_chunk {}", op.row_chunk);
  if (!op.outputs.empty() && op.outputs[0] != kNoValue)
    text += fmt::format("  # {}", program.value(op.outputs[0]).name);
  return text;
}

std::vector<DecayRun> DecayRuns(const ParameterEntry& entry) {
  std::vector<DecayRun> runs;
  for (const ParameterPart& part : entry.parts) {
    const Range rows = {part.row_begin, part.row_begin + part.local_shape[0]};
    if (!runs.empty() && runs.back().decays == part.weight_decay &&
        runs.back().rows.end == rows.begin) {
      runs.back().rows.end = rows.end;
    } else {
      runs.push_back({rows, part.weight_decay});
    }
  }
  return runs;
}

bool IsFrozen(const Program& program, const State& state) {
  return state.parameter >= 0 && !program.parameters[state.parameter].trained();
}

void AddState(Program& program, State state) {
  const auto before = [](const State& a, const State& b) {
    if (a.kind != b.kind) return a.kind < b.kind;
    return a.kind == StateKind::kOptimizer && a.name < b.name;
  };
  const auto place = std::ranges::upper_bound(program.states, state, before);
  program.states.insert(place, std::move(state));
}

std::vector<ParameterPart> PartsOf(const Program& program, const State& state) {
  if (state.parameter >= 0) {
    std::vector<ParameterPart> parts = program.parameters[state.parameter].parts;
    for (ParameterPart& part : parts) part.name.insert(0, state.name);
    return parts;
  }
  ParameterPart whole = {.name = state.name};
  for (const Dim& dim : program.value(state.value).dims) {
    whole.global_shape.push_back(dim.global);
    whole.global_offset.push_back(0);
    whole.local_shape.push_back(dim.local);
  }
  return {std::move(whole)};
}

std::string ToText(const Program& program) {
  std::string text = "mesh";
  for (int a = 0; a < kNumAxes; ++a) {
    if (program.mesh.degrees.of[a] == 1) continue;
    text += fmt::format(" {} {}/{}", Name(static_cast<Axis>(a)), program.mesh.coordinates.of[a],
                        program.mesh.degrees.of[a]);
  }
  text += "\nvalues\n";
  for (const Value& value : program.values) text += fmt::format("  {}\n", ToText(value));
  text += "parameters\n";
  for (const ParameterEntry& entry : program.parameters) {
    text += fmt::format("  %{}{}{}{}\n", entry.value, entry.counted_in_norm ? " counted" : "",
                        entry.tied ? " tied" : "", entry.trained() ? "" : " frozen");
    for (const ParameterPart& part : entry.parts) {
      text += fmt::format("    {} [{}] at [{}] local [{}] row {}{}\n", part.name,
                          fmt::join(part.global_shape, ", "), fmt::join(part.global_offset, ", "),
                          fmt::join(part.local_shape, ", "), part.row_begin,
                          part.weight_decay ? " decayed" : "");
    }
  }
  for (size_t c = 0; c < program.chunks.size(); ++c) {
    text += fmt::format("chunk {}\n", program.chunks[c].chunk);
    for (int p = 0; p < kNumPieces; ++p) {
      // I and W contain the operations of backward, which the text of backward marks with their
      // part.
      const Piece piece = static_cast<Piece>(p);
      if (piece == Piece::kInputGradient || piece == Piece::kWeightGradient) continue;
      AppendOps(text, Name(piece), program.Ops(static_cast<int>(c), piece), program);
    }
  }
  text += "rank\n";
  AppendOps(text, "update", program.update, program);
  AppendOps(text, "initialize", program.initialize, program);
  return text;
}

}  // namespace troupe::model
